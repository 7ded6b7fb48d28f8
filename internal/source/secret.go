package source

import (
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// CheckWord is the error of what is one word in a request, such as a token or a
// username, and has control characters in it, which no server could mean. What is the
// name of the setting. The word is not in the error. [attr.Lines] is about the
// secrets of settings.
func CheckWord(what, word string) error {
	if problem := recognize.NoWord(word); problem != "" {
		return fmt.Errorf("%s %s", what, problem)
	}
	return nil
}
