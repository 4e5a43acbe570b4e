gradients = context.all_reduce("SUM", gradients)
