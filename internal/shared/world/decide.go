package world

import (
	"slices"
	"strings"
)

// Attribute describes the setting that an environment variable would fill.
type Attribute struct {
	IsWritten  bool // whether the settings already contain the attribute, or another member of its group
	IsHarmless bool // whether the variable's value cannot endanger a secret
	IsIdentity bool // whether the attribute is a secret, names one, belongs to one, or applies to one server only
	IsCommand  bool // whether the variable's value names a program, or leads to one
	IsFollowed bool // whether a client reads the variable by itself and cannot be prevented from it
	IsShown    bool // whether the variable's value refers to var.* and ends up in files, errors or requests
	IsSplit    bool // whether the secret used beside it belongs to the same group
}

// Beside describes the circumstances in which an environment variable is read.
type Beside struct {
	Secret        bool // whether a secret of the configuration is sent
	Withholds     bool // whether the [World] of the client or entry does not contain the variable
	OtherServer   bool // whether the variable is meant for a different server than the one being contacted
	NoServer      bool // whether neither a setting nor a variable names the server that the variable is meant for
	AllowsCommand bool // whether the configuration allows the environment to choose programs
}

// Verdict is the result of [Decide].
type Verdict struct {
	Answer Answer
	Rule   string // the name of the rule that determined the answer
}

// Answer says whether a variable is used.
type Answer string

// The possible answers.
const (
	Used    Answer = "used"
	Ignored Answer = "ignored"
	Refused Answer = "refused" // setting the variable is an error
)

// Decide returns whether an environment variable may fill an attribute, and the rule that applies. All code
// that takes a value from the environment calls Decide. The first rule that applies wins.
//
// The parameter variable is a name such as "AWS_REGION", "TF_ENCRYPTION" for a setting in that variable, or
// the name of a file that a client finds by itself. It is empty if no variable is set.
func Decide(variable string, a Attribute, b Beside) Verdict {
	switch {
	case variable == "":
		return Verdict{Ignored, "unset"}

	// Someone who can set a variable in a pipeline must not be able to choose the programs that the pipeline
	// runs.
	case a.IsCommand && !b.AllowsCommand:
		return Verdict{Refused, "program"}

	case a.IsWritten:
		return Verdict{Ignored, "written"}

	// It is better not to use the client at all than to let it use a server that such a variable names.
	case a.IsFollowed && !a.IsHarmless && b.Withholds:
		return Verdict{Refused, "followed"}

	case b.Withholds:
		return Verdict{Ignored, "withheld"}

	// A harmless variable that is not part of an identity may apply to all servers.
	case b.OtherServer && (a.IsIdentity || !a.IsHarmless):
		return Verdict{Ignored, "other server"}

	// The secret could go to any server.
	case b.NoServer && a.IsIdentity:
		return Verdict{Refused, "no server"}

	case b.Secret && a.IsShown:
		return Verdict{Refused, "shown"}

	// All parts of an identity must come from the same place.
	case b.Secret && a.IsSplit:
		return Verdict{Refused, "split"}

	case a.IsHarmless:
		return Verdict{Used, "harmless"}

	// The machine's proxy cannot read a verified connection.
	case slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(variable)):
		return Verdict{Used, "proxy"}

	case !b.Secret:
		return Verdict{Used, "alone"}
	}
	// The variable could redirect the secret.
	return Verdict{Refused, "beside a secret"}
}
