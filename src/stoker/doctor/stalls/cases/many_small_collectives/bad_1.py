gradients = [context.all_reduce("SUM", gradient) for gradient in gradients]
