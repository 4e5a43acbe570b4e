SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.audit_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.artifacts (
    id bigint NOT NULL,
    hash text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    size bigint,
    path text NOT NULL,
    "time" double precision NOT NULL
);
CREATE SEQUENCE public.artifacts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.artifacts_id_seq OWNED BY public.artifacts.id;
CREATE TABLE public.audit (
    seq bigint NOT NULL,
    "time" double precision NOT NULL,
    actor text NOT NULL,
    event text NOT NULL,
    run text,
    details text NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.findings (
    run text NOT NULL,
    n integer NOT NULL,
    kind text NOT NULL,
    code text NOT NULL,
    file text NOT NULL,
    line integer NOT NULL,
    seconds double precision,
    lost_s double precision,
    speedup double precision,
    finding text NOT NULL
);
CREATE TABLE public.ledger (
    run text NOT NULL,
    account text NOT NULL,
    seconds double precision NOT NULL
);
CREATE TABLE public.links (
    run text NOT NULL,
    artifact bigint NOT NULL,
    relation text NOT NULL
);
CREATE TABLE public.points (
    series bigint NOT NULL,
    n bigint NOT NULL,
    step bigint NOT NULL,
    "time" double precision NOT NULL,
    value double precision
);
CREATE TABLE public.runs (
    id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    program text NOT NULL,
    arguments text NOT NULL,
    parameters text NOT NULL,
    git_commit text,
    git_diff text,
    versions text NOT NULL,
    machine text NOT NULL,
    state text NOT NULL,
    error text,
    exit_code integer,
    parent text,
    worker integer,
    started double precision NOT NULL,
    ended double precision,
    seen double precision,
    steps bigint,
    wall_s double precision,
    steps_per_s double precision,
    examples_per_s double precision,
    audit_seq bigint
);
CREATE TABLE public.series (
    id bigint NOT NULL,
    run text NOT NULL,
    name text NOT NULL,
    count bigint NOT NULL,
    last double precision,
    last_step bigint,
    min double precision,
    max double precision
);
CREATE SEQUENCE public.series_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.series_id_seq OWNED BY public.series.id;
CREATE TABLE public.writers (
    id text NOT NULL,
    batch bigint NOT NULL,
    "time" double precision NOT NULL
);
ALTER TABLE ONLY public.artifacts ALTER COLUMN id SET DEFAULT nextval('public.artifacts_id_seq'::regclass);
ALTER TABLE ONLY public.series ALTER COLUMN id SET DEFAULT nextval('public.series_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0001');
INSERT INTO public.artifacts VALUES (1, 'sha256:6452b7878fc869bdd014f1e4ca1ca1e0561b5bf6d386635e1c0b350a9353386e', 'data', 'numbers', 24, '', 1794972512.58647);
INSERT INTO public.audit VALUES (1, 1794972512.1776476, 'tester', 'run started', 'old-1', '{"kind":"track","name":"old one","program":"train.py"}', '0000000000000000000000000000000000000000000000000000000000000000', 'e23ad444997b0eb5afbe6e957398f39e5c180e1cd2f78f2eaafad67ce0c79853');
INSERT INTO public.audit VALUES (2, 1794972512.5864732, 'tester', 'artifact', 'old-1', '{"hash":"sha256:6452b7878fc869bdd014f1e4ca1ca1e0561b5bf6d386635e1c0b350a9353386e","kind":"data","name":"numbers","path":"","relation":"uses","size":24}', 'e23ad444997b0eb5afbe6e957398f39e5c180e1cd2f78f2eaafad67ce0c79853', 'f93290486c876e78743200208e499d5e226c56b0e46283a3cfb7a66a2c663b80');
INSERT INTO public.audit VALUES (3, 1794972512.604436, 'tester', 'run started', 'old-2', '{"kind":"train","name":"old two","program":"train.py"}', 'f93290486c876e78743200208e499d5e226c56b0e46283a3cfb7a66a2c663b80', 'd84faf4302f6d4ff32411992436a2c7d7b0256ed9badede5fa0882075845ece4');
INSERT INTO public.audit VALUES (4, 1794972512.604853, 'tester', 'run started', 'old-3', '{"kind":"track","name":"old three","program":"train.py"}', 'd84faf4302f6d4ff32411992436a2c7d7b0256ed9badede5fa0882075845ece4', '0838a9faa2fa44b0dd41d7816cd55ff2741aa2929d5eaf99fe102bd7ca123862');
INSERT INTO public.audit VALUES (5, 1794972512.604814, 'tester', 'run ended', 'old-2', '{"error":"ValueError: enough","state":"failed"}', '0838a9faa2fa44b0dd41d7816cd55ff2741aa2929d5eaf99fe102bd7ca123862', 'bed2115e0079eb211b70f123d8c40f4d5d83c7c3bff47f950dac1199b97d2e59');
INSERT INTO public.audit VALUES (6, 1794972512.6051679, 'tester', 'run ended', 'old-3', '{"error":null,"state":"finished"}', 'bed2115e0079eb211b70f123d8c40f4d5d83c7c3bff47f950dac1199b97d2e59', 'a25743bd7c834cb641147c1b8f294373734ea401e4cac4bd5d59f82d8325a4c3');
INSERT INTO public.audit VALUES (7, 1794972512.6051853, 'tester', 'run ended', 'old-1', '{"error":null,"state":"finished"}', 'a25743bd7c834cb641147c1b8f294373734ea401e4cac4bd5d59f82d8325a4c3', '756e7280e07907252e606a918b455a08b8cafb8822dc9c8a2bddf8ef13e57016');
INSERT INTO public.audit VALUES (8, 1794972512.6514187, 'tester', 'run sealed', 'old-1', '{"findings":"d9a5b04112431be1b544fd7d61c81e853d1b79a04b1e11f8d929cfa343ecb7c2","ledger":"bd80754e6a7f8fec6a0e1a8845135742b462198f60c372b4004075f863138179","row":"3f5329936990edbce81416651b140565224202c23bd2be031fa2c94b5a9bfceb","values":"f66c13a5ec6e13c8d4c90e9e2a8e88373440fd2bcfdccc2144d29721916cdb81"}', '756e7280e07907252e606a918b455a08b8cafb8822dc9c8a2bddf8ef13e57016', '6c3af5f4ef8a047cb1c5d64a06cc203268b2d681918f9453dff1465bf451f8b6');
INSERT INTO public.audit VALUES (9, 1794972512.6629844, 'tester', 'run sealed', 'old-2', '{"findings":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945","ledger":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945","row":"d14779a68346db79ed2226e6bcc35ac267db7e568fda449450062f2ec56893ef","values":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"}', '6c3af5f4ef8a047cb1c5d64a06cc203268b2d681918f9453dff1465bf451f8b6', '3bfb3f90b6b7cc3d9b2479f1f71f401b95c62e626e5dc49a25f370a4e12f6eac');
INSERT INTO public.audit VALUES (10, 1794972512.6643877, 'tester', 'run sealed', 'old-3', '{"findings":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945","ledger":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945","row":"f1f55f225de884d878922ab8cbeae1ac432c957a577c7269bc2ae18fd7c086b8","values":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"}', '3bfb3f90b6b7cc3d9b2479f1f71f401b95c62e626e5dc49a25f370a4e12f6eac', 'c43593586dc8a34ff5e06c8696d123c754f7d75f35d5128c7f8dc350b81e01cd');
INSERT INTO public.audit VALUES (11, 1794972512.8664703, 'tester', 'run deleted', 'old-3', '{"files":[],"name":"old three"}', 'c43593586dc8a34ff5e06c8696d123c754f7d75f35d5128c7f8dc350b81e01cd', '46afaa350a4d184b3af02e05f4c32331cdcfe93c669b500b3c3d1ab6dd56e3f6');
INSERT INTO public.findings VALUES ('old-1', 0, 'sync-in-loop', 'STK101', 'train.py', 42, 5, 4.5, 3.1, '{"code":"STK101","file":"train.py","kind":"sync-in-loop","line":42,"lost_s":4.5,"seconds":5.0,"source":"print(loss.numpy())","what_if":{"speedup":3.1}}');
INSERT INTO public.ledger VALUES ('old-1', 'sync', 1.5);
INSERT INTO public.ledger VALUES ('old-1', 'input', 0.5);
INSERT INTO public.links VALUES ('old-1', 1, 'uses');
INSERT INTO public.points VALUES (1, 0, 0, 1794972512.1785402, 0.5);
INSERT INTO public.points VALUES (1, 1, 1, 1794972512.178543, NULL);
INSERT INTO public.points VALUES (1, 2, 2, 1794972512.178545, 'Infinity');
INSERT INTO public.points VALUES (1, 3, 3, 1794972512.1785464, '-Infinity');
INSERT INTO public.points VALUES (1, 4, 4, 1794972512.1785476, -0);
INSERT INTO public.points VALUES (1, 5, 5, 1794972512.1785493, 0.30000000000000004);
INSERT INTO public.points VALUES (2, 0, 0, 1794972512.1785402, 0);
INSERT INTO public.points VALUES (2, 1, 1, 1794972512.178543, 1);
INSERT INTO public.points VALUES (2, 2, 2, 1794972512.178545, 2);
INSERT INTO public.points VALUES (2, 3, 3, 1794972512.1785464, 3);
INSERT INTO public.points VALUES (2, 4, 4, 1794972512.1785476, 4);
INSERT INTO public.points VALUES (2, 5, 5, 1794972512.1785493, 5);
INSERT INTO public.runs VALUES ('old-2', 'old two', 'train', 'train.py', '["--epochs","3"]', '{}', NULL, NULL, '{"python":"3.11.7","stoker":"0.2.0"}', '{"cores":2,"host":"elsewhere"}', 'failed', 'ValueError: enough', NULL, 'old-1', NULL, 1794972512.6043997, 1794972512.6048107, 1794972512.6048107, 3, NULL, 1.5, NULL, 3);
INSERT INTO public.runs VALUES ('old-1', 'old one', 'track', 'train.py', '["--epochs","3"]', '{"layers":[1,2],"rate":0.1}', NULL, NULL, '{"python":"3.11.7","stoker":"0.2.0"}', '{"cores":2,"host":"elsewhere"}', 'finished', NULL, NULL, NULL, NULL, 1794972512.1776252, 1794972512.6051846, 1794972512.6051846, NULL, NULL, NULL, NULL, 1);
INSERT INTO public.series VALUES (1, 'old-1', 'loss', 6, 0.30000000000000004, 5, '-Infinity', 'Infinity');
INSERT INTO public.series VALUES (2, 'old-1', 'odd näme', 6, 5, 5, 0, 5);
INSERT INTO public.writers VALUES ('3869-7f614be0b901', 4, 1794972512.6646152);
INSERT INTO public.writers VALUES ('3869-a85860897b0c', 1, 1794972512.939013);
SELECT pg_catalog.setval('public.artifacts_id_seq', 1, true);
SELECT pg_catalog.setval('public.series_id_seq', 2, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifact_once UNIQUE (hash, kind, path);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (run, n);
ALTER TABLE ONLY public.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (run, account);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (run, artifact, relation);
ALTER TABLE ONLY public.points
    ADD CONSTRAINT points_pkey PRIMARY KEY (series, n);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.series
    ADD CONSTRAINT series_of_run UNIQUE (run, name);
ALTER TABLE ONLY public.series
    ADD CONSTRAINT series_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.writers
    ADD CONSTRAINT writers_pkey PRIMARY KEY (id);
CREATE INDEX findings_by_line ON public.findings USING btree (file, line);
CREATE INDEX links_by_artifact ON public.links USING btree (artifact);
CREATE INDEX runs_by_parent ON public.runs USING btree (parent);
CREATE INDEX runs_by_start ON public.runs USING btree (started);
CREATE TRIGGER audit_no_change BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit FOR EACH STATEMENT EXECUTE FUNCTION public.audit_is_append_only();
