package world

import (
	"slices"
	"strings"
)

// Attribute describes the setting that a variable would fill.
type Attribute struct {
	IsWritten  bool // the settings contain the attribute, or another member of its group
	IsHarmless bool // the variable's value endangers no secret
	IsIdentity bool // the attribute is a secret, names one, belongs to one, or counts for one server only
	IsCommand  bool // the variable's value names a program, or leads to one
	IsFollowed bool // a client reads the variable by itself, and cannot be kept from it
	IsShown    bool // the variable's value contains var.*, and ends up in files, errors or requests
	IsSplit    bool // the secret beside it is a member of the same group
}

// Beside describes the circumstances in which a variable is read.
type Beside struct {
	Secret        bool // a secret of the configuration, which is sent
	Withholds     bool // the [World] of the client, or of the entry, does not contain the variable
	OtherServer   bool // the variable is meant for another server than the one that is asked
	NoServer      bool // neither a setting nor a variable tells which server the variable is meant for
	AllowsCommand bool // the configuration lets the environment choose programs
}

// Verdict is the answer of [Decide].
type Verdict struct {
	Answer Answer
	Rule   string // the name of the rule that led to the answer
}

// Answer tells whether a variable is used.
type Answer string

// These are the answers.
const (
	Used    Answer = "used"
	Ignored Answer = "ignored"
	Refused Answer = "refused" // the variable is an error
)

// Decide returns the answer for a variable that would fill an attribute, and the rule that led to
// it. All code that takes a value from the environment calls it. The first rule that applies
// counts.
//
// The variable is named, such as "AWS_REGION". It may be "TF_ENCRYPTION", for a setting in it, or the name
// of a file that a client finds by itself. It is "" if no variable is set.
func Decide(variable string, a Attribute, b Beside) Verdict {
	switch {
	case variable == "":
		return Verdict{Ignored, "unset"}

	// A person who can set a variable of a pipeline must not be able to choose the programs that run in it.
	case a.IsCommand && !b.AllowsCommand:
		return Verdict{Refused, "program"}

	case a.IsWritten:
		return Verdict{Ignored, "written"}

	// Using no client is better than using a server that such a variable names.
	case a.IsFollowed && !a.IsHarmless && b.Withholds:
		return Verdict{Refused, "followed"}

	case b.Withholds:
		return Verdict{Ignored, "withheld"}

	// A harmless variable that is no part of an identity may be for all servers.
	case b.OtherServer && (a.IsIdentity || !a.IsHarmless):
		return Verdict{Ignored, "other server"}

	// The secret could go to any server.
	case b.NoServer && a.IsIdentity:
		return Verdict{Refused, "no server"}

	case b.Secret && a.IsShown:
		return Verdict{Refused, "shown"}

	// The parts of an identity must come from one place.
	case b.Secret && a.IsSplit:
		return Verdict{Refused, "split"}

	case a.IsHarmless:
		return Verdict{Used, "harmless"}

	// A proxy of the machine cannot read a verified connection.
	case slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(variable)):
		return Verdict{Used, "proxy"}

	case !b.Secret:
		return Verdict{Used, "alone"}
	}
	// The variable could send the secret elsewhere.
	return Verdict{Refused, "beside a secret"}
}
