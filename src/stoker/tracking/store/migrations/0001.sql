CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE runs (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    program TEXT NOT NULL,
    arguments TEXT NOT NULL,
    parameters TEXT NOT NULL,
    git_commit TEXT,
    git_diff TEXT,
    versions TEXT NOT NULL,
    machine TEXT NOT NULL,
    state TEXT NOT NULL,
    error TEXT,
    exit_code INTEGER,
    parent TEXT,
    worker INTEGER,
    started $double NOT NULL,
    ended $double,
    seen $double,
    steps BIGINT,
    wall_s $double,
    steps_per_s $double,
    examples_per_s $double,
    audit_seq BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX runs_by_start ON runs (started);
CREATE INDEX runs_by_parent ON runs (parent);
CREATE TABLE series (
    id $counted NOT NULL,
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    count BIGINT NOT NULL,
    last $double,
    last_step BIGINT,
    min $double,
    max $double,
    PRIMARY KEY (id),
    CONSTRAINT series_of_run UNIQUE (run, name)
);
CREATE TABLE points (
    series BIGINT NOT NULL,
    n BIGINT NOT NULL,
    step BIGINT NOT NULL,
    time $double NOT NULL,
    value $double,
    PRIMARY KEY (series, n)
)$without_rowid;
CREATE TABLE ledger (
    run TEXT NOT NULL,
    account TEXT NOT NULL,
    seconds $double NOT NULL,
    PRIMARY KEY (run, account)
);
CREATE TABLE findings (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    code TEXT NOT NULL,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    seconds $double,
    lost_s $double,
    speedup $double,
    finding TEXT NOT NULL,
    PRIMARY KEY (run, n)
);
CREATE INDEX findings_by_line ON findings (file, line);
CREATE TABLE artifacts (
    id $counted NOT NULL,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    size BIGINT,
    path TEXT NOT NULL,
    time $double NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT artifact_once UNIQUE (hash, kind, path)
);
CREATE TABLE links (
    run TEXT NOT NULL,
    artifact BIGINT NOT NULL,
    relation TEXT NOT NULL,
    PRIMARY KEY (run, artifact, relation)
);
CREATE INDEX links_by_artifact ON links (artifact);
CREATE TABLE audit (
    seq BIGINT NOT NULL,
    time $double NOT NULL,
    actor TEXT NOT NULL,
    event TEXT NOT NULL,
    run TEXT,
    details TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (seq)
);
CREATE TABLE writers (
    id TEXT NOT NULL,
    batch BIGINT NOT NULL,
    time $double NOT NULL,
    PRIMARY KEY (id)
);
