package some

import (
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// In the provider block, the comment may say what it likes.
var table = attr.Attr{Name: "x", Doc: "It is set in `credentials`, in the provider block."}

type page struct{ Doc string }

var other = page{Doc: "in the provider block"} // want `"provider block" is a word of one program`

const place = "in the provider " + // want `"provider block" is a word`
	"block"

func say(name string) error {
	if of, ok := strings.CutPrefix(name, "TF_VAR_"); ok {
		return fmt.Errorf("set TF_VAR_%s", of) // want `"TF_VAR_.*" is a word`
	}
	if name == "" {
		return errors.New("set " + name + " in the provider " + // want `"provider block" is a word`
			"block")
	}
	if name == "TF_VAR_x" {
		return errors.New("set it in the file of -config") // want `"-config" is a word`
	}
	return errors.New("see safe.directory in git-config(1) and openid-configuration; set it in {settings}, in " + place) // want `"provider block"`
}

const flag = "-config" // want `"-config" is a word`
