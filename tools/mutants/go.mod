// Says which changes to our code no test notices, for make mutants. It needs
// nothing but Go; scripts/tool.sh pins gremlins, which makes the changes.
module github.com/statecrypt/terraform-provider-statecrypt/tools/mutants

go 1.26
