-- A role that can read the state of one workspace. It is read with
-- schema_name = "network_state".
CREATE ROLE network_reader LOGIN;
CREATE SCHEMA network_state;
CREATE VIEW network_state.states WITH (security_barrier) AS
  SELECT name, data FROM terraform_remote_state.states WHERE name = 'network';
GRANT USAGE ON SCHEMA network_state TO network_reader;
GRANT SELECT ON network_state.states TO network_reader;
