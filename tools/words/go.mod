module github.com/statecrypt/terraform-provider-statecrypt/tools/words

go 1.26.0
