package main

// others maps each function that may read an error text to the reason: usually, the error of another package has no
// type, no sentinel and no code.
var others = map[string]string{
	"cmd/statecrypt.call.named":                 "package flag has no types of errors",
	"encryption.describeJSON":                   "encoding/json has no mark for what is nested too deeply",
	"encryption/internal/program.question.End":  "encoding/json has no type for an unknown field",
	"internal/shared/jsonwalk.IsCutOff":         "encoding/json has no mark for text that ends in the middle",
	"internal/connections/netfail.reasonInText": "net/http and crypto/tls have errors.New for some of what a proxy or a server does",
	"internal/auth/awsauth.Settings.noInstance": "the SDK has no type for a metadata service that is disabled",
	"internal/auth/awsauth.Settings.explainSTS": "package ssocreds has no types of errors",
	"internal/auth/azureauth.knownReason":       "the SDK puts the code of Entra ID into the text",
	"internal/store/git.branch.who":             "git has no code for a committer that it does not know",
	"internal/store/git.state.push":             "git has no code for a hook that refuses all",
	"internal/source/object.Store.damaged":      "the SDK has no type for a wrong checksum",
	"internal/source/pg.driverConfig":           "pgconn.ParseConfigError has no fields",
	"internal/source/pg.connection.failure":     "pgconn has no types for what a server refuses before it speaks SQL",

	// These functions only join or print sentences. Their decisions do not depend on wording.
	"internal/shared/fault.Voice.Fill":    "it looks for placeholders, which no rewording of a sentence concerns",
	"internal/shared/fault.Voice.Text":    "an advice goes behind its reason, with which the text of a wrapper ends",
	"internal/wrap/proxy.Proxy.tell":      "the same words are not said twice, whatever they are",
	"builtin/method/sops.keyError.reason": "what ErrNoKey says is said once, and not for each key of a file",
	"internal/provider.sentence":          "a sentence has a capital letter and a full stop",
	"cmd/statecrypt.call.versionText":     "an error is printed in one line",
	"internal/wrap/words.Usage":           "what follows a question is a sentence of its own",
}
