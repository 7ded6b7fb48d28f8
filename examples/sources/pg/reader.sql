-- A role that can read all states, and nothing else. Run this in the database of
-- the states, as the owner of the schema, and give the role a password with
-- \password state_reader.
CREATE ROLE state_reader LOGIN;
GRANT USAGE ON SCHEMA terraform_remote_state TO state_reader;
GRANT SELECT (name, data) ON terraform_remote_state.states TO state_reader;
