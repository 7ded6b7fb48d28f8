// Reads what "go test -json" prints, for make test. It needs nothing but Go.
module github.com/statecrypt/terraform-provider-statecrypt/tools/testsummary

go 1.26
