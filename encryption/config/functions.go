package config

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// functions are those that configuration text may call. They behave as
// OpenTofu's functions of the same name; relative paths begin in dir, "" for
// that of the process.
func functions(dir string) map[string]function.Function {
	return map[string]function.Function{
		"base64decode": textFunction(decodeBase64),
		"base64encode": textFunction(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
		"can":          tryfunc.CanFunc,
		"chomp":        stdlib.ChompFunc,
		"coalesce":     coalesceFunction(),
		"compact":      stdlib.CompactFunc,
		"concat":       stdlib.ConcatFunc,
		"contains":     stdlib.ContainsFunc,
		"csvdecode":    stdlib.CSVDecodeFunc,
		"distinct":     stdlib.DistinctFunc,
		"element":      stdlib.ElementFunc,
		"file":         textFunction(func(path string) (string, error) { return readText(dir, path) }),
		"flatten":      stdlib.FlattenFunc,
		"format":       stdlib.FormatFunc,
		"formatlist":   stdlib.FormatListFunc,
		"indent":       stdlib.IndentFunc,
		"join":         stdlib.JoinFunc,
		"jsondecode":   stdlib.JSONDecodeFunc,
		"jsonencode":   stdlib.JSONEncodeFunc,
		"keys":         stdlib.KeysFunc,
		"lower":        stdlib.LowerFunc,
		"max":          stdlib.MaxFunc,
		"merge":        stdlib.MergeFunc,
		"min":          stdlib.MinFunc,
		"nonsensitive": identityFunction(),
		"parseint":     stdlib.ParseIntFunc,
		"pathexpand":   textFunction(keyfile.ExpandHome),
		"range":        stdlib.RangeFunc,
		"regex":        stdlib.RegexFunc,
		"replace":      replaceFunction(),
		"reverse":      stdlib.ReverseListFunc,
		"sensitive":    identityFunction(),
		"sha256": textFunction(func(s string) (string, error) {
			sum := sha256.Sum256([]byte(s))
			return hex.EncodeToString(sum[:]), nil
		}),
		"slice":      stdlib.SliceFunc,
		"sort":       stdlib.SortFunc,
		"split":      stdlib.SplitFunc,
		"substr":     stdlib.SubstrFunc,
		"tobool":     stdlib.MakeToFunc(cty.Bool),
		"tolist":     stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":      stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber":   stdlib.MakeToFunc(cty.Number),
		"tostring":   stdlib.MakeToFunc(cty.String),
		"trim":       stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc,
		"try":        tryfunc.TryFunc,
		"upper":      stdlib.UpperFunc,
		"values":     stdlib.ValuesFunc,
	}
}

func textFunction(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := f(args[0].AsString())
			return cty.StringVal(out), err
		},
	})
}

// coalesceFunction is OpenTofu's coalesce, which passes over empty strings.
// The one of cty does not.
func coalesceFunction() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "values", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type:     stdlib.CoalesceFunc.ReturnTypeForValues,
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			for _, v := range args {
				v, err := convert.Convert(v, typ)
				if err != nil || !v.IsNull() && !v.RawEquals(cty.StringVal("")) {
					return v, err
				}
			}
			return cty.NilVal, errors.New("every value is null or empty")
		},
	})
}

// replaceFunction is OpenTofu's replace, which treats /…/ as a regular
// expression.
func replaceFunction() function.Function {
	return function.New(&function.Spec{
		Params: stdlib.ReplaceFunc.Params(),
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			search := args[1].AsString()
			if len(search) > 1 && search[0] == '/' && search[len(search)-1] == '/' {
				return stdlib.RegexReplace(args[0], cty.StringVal(search[1:len(search)-1]), args[2])
			}
			return stdlib.Replace(args[0], args[1], args[2])
		},
	})
}

// identityFunction stands for sensitive and nonsensitive: nothing of this
// text is ever shown, whether or not it is marked.
func identityFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}},
		Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0], nil },
	})
}

func decodeBase64(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || !utf8.Valid(b) {
		return "", &callError{"its argument is not the base64 of UTF-8 text" + orItself}
	}
	return string(b), nil
}

// callError is why a function fails, without values of the text.
type callError struct{ text string }

func (e *callError) Error() string { return e.text }

// readText repeats the path in errors only if it is one: it may be a secret by mistake.
func readText(dir, path string) (string, error) {
	named := "the file that its argument names"
	if keyfile.IsPath(path) {
		named = fmt.Sprintf("%q", path)
	}
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
		path = filepath.Join(dir, path)
	}
	b, err := keyfile.Read(path)
	if err != nil {
		begins := ""
		if dir == "" && !filepath.IsAbs(path) && errors.Is(err, fs.ErrNotExist) {
			begins = "; a relative path begins in the working directory, not beside the settings"
		}
		return "", &callError{fmt.Sprintf("%s cannot be read: %v%s", named, errors.Unwrap(err), begins)}
	}
	if syntax.IsUTF16(b) {
		return "", &callError{named + " is UTF-16, as PowerShell writes it with >; save it as UTF-8"}
	}
	if !utf8.Valid(b) {
		return "", &callError{named + " does not hold UTF-8 text"}
	}
	return string(b), nil
}
