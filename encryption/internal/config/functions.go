package config

import (
	"crypto/md5"  //nolint:gosec // OpenTofu offers MD5
	"crypto/sha1" //nolint:gosec // OpenTofu offers SHA-1
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// functions returns the functions that configuration text may call. They behave like the OpenTofu
// functions with the same names. Relative paths are relative to dir, or to the working directory if
// dir is "".
func functions(dir string) map[string]function.Function {
	all := map[string]function.Function{
		"abs":             stdlib.AbsoluteFunc,
		"abspath":         textFunction(func(path string) (string, error) { return absolute(from(dir, path)), nil }),
		"base64decode":    textFunction(decodeBase64),
		"base64encode":    textFunction(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
		"basename":        textFunction(func(path string) (string, error) { return filepath.Base(path), nil }),
		"can":             tryfunc.CanFunc,
		"ceil":            stdlib.CeilFunc,
		"chomp":           stdlib.ChompFunc,
		"chunklist":       stdlib.ChunklistFunc,
		"coalesce":        coalesceFunction(),
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"csvdecode":       stdlib.CSVDecodeFunc,
		"dirname":         textFunction(func(path string) (string, error) { return filepath.Dir(path), nil }),
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"endswith":        testFunction(strings.HasSuffix),
		"file":            textFunction(func(path string) (string, error) { return readText(dir, path) }),
		"flatten":         stdlib.FlattenFunc,
		"floor":           stdlib.FloorFunc,
		"format":          stdlib.FormatFunc,
		"formatdate":      stdlib.FormatDateFunc,
		"formatlist":      stdlib.FormatListFunc,
		"indent":          stdlib.IndentFunc,
		"join":            stdlib.JoinFunc,
		"jsondecode":      decoder(stdlib.JSONDecodeFunc, ExpectJSON),
		"jsonencode":      stdlib.JSONEncodeFunc,
		"keys":            stdlib.KeysFunc,
		"length":          valueFunction(1, length),
		"log":             stdlib.LogFunc,
		"lookup":          valueFunction(2, lookUp),
		"lower":           stdlib.LowerFunc,
		"max":             stdlib.MaxFunc,
		"merge":           stdlib.MergeFunc,
		"min":             stdlib.MinFunc,
		"nonsensitive":    identityFunction(),
		"one":             valueFunction(1, one),
		"parseint":        stdlib.ParseIntFunc,
		"pathexpand":      textFunction(world.ExpandHome),
		"pow":             stdlib.PowFunc,
		"range":           stdlib.RangeFunc,
		"regex":           stdlib.RegexFunc,
		"regexall":        stdlib.RegexAllFunc,
		"replace":         replaceFunction(),
		"reverse":         stdlib.ReverseListFunc,
		"sensitive":       identityFunction(),
		"setintersection": stdlib.SetIntersectionFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"signum":          stdlib.SignumFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"split":           stdlib.SplitFunc,
		"startswith":      testFunction(strings.HasPrefix),
		"strcontains":     testFunction(strings.Contains),
		"strrev":          stdlib.ReverseFunc,
		"substr":          stdlib.SubstrFunc,
		"timeadd":         stdlib.TimeAddFunc,
		"title":           stdlib.TitleFunc,
		"tobool":          stdlib.MakeToFunc(cty.Bool),
		"tolist":          stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":           stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber":        stdlib.MakeToFunc(cty.Number),
		"toset":           stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring":        stdlib.MakeToFunc(cty.String),
		"trim":            stdlib.TrimFunc,
		"trimprefix":      stdlib.TrimPrefixFunc,
		"trimspace":       stdlib.TrimSpaceFunc,
		"trimsuffix":      stdlib.TrimSuffixFunc,
		"try":             tryfunc.TryFunc,
		"upper":           stdlib.UpperFunc,
		"urldecode":       textFunction(decodeURL),
		"urlencode":       textFunction(func(s string) (string, error) { return url.QueryEscape(s), nil }),
		"values":          stdlib.ValuesFunc,
		"yamldecode":      decoder(yaml.YAMLDecodeFunc, expectYAML),
		"yamlencode":      yaml.YAMLEncodeFunc,
		"zipmap":          stdlib.ZipmapFunc,
	}
	for name, digest := range digests() {
		all[name] = textFunction(func(s string) (string, error) { return digest([]byte(s)), nil })
	}
	return all
}

// ofFiles returns the functions that read files, except file itself. TF_ENCRYPTION must not call
// them.
func ofFiles(dir string) map[string]function.Function {
	all := map[string]function.Function{
		"fileexists":   fileExistsFunction(dir),
		"templatefile": templateFunction(dir),
	}
	asBase64 := func(content []byte) string { return base64.StdEncoding.EncodeToString(content) }
	ofContent := digests()
	ofContent["base64"] = asBase64
	for name, digest := range ofContent {
		all["file"+name] = textFunction(func(path string) (string, error) {
			content, err := readBytes(dir, path)
			return digest(content), err
		})
	}
	return all
}

// elsewhere lists the OpenTofu functions that are missing here. Either no known encryption block
// calls them, or they return another value at each call, which would give another key.
const elsewhere = " alltrue anytrue base64gunzip base64gzip bcrypt cidrcontains cidrhost cidrnetmask cidrsubnet cidrsubnets " +
	"ephemeralasnull fileset index issensitive list map matchkeys plantimestamp rsadecrypt setproduct sum templatestring " +
	"textdecodebase64 textencodebase64 timecmp timestamp transpose type uuid uuidv5 "

// digests returns OpenTofu's digest functions by name.
func digests() map[string]func([]byte) string {
	inHex := func(content []byte, h hash.Hash) string {
		h.Write(content)
		return hex.EncodeToString(h.Sum(nil))
	}
	return map[string]func([]byte) string{
		"base64sha256": func(b []byte) string { sum := sha256.Sum256(b); return base64.StdEncoding.EncodeToString(sum[:]) },
		"base64sha512": func(b []byte) string { sum := sha512.Sum512(b); return base64.StdEncoding.EncodeToString(sum[:]) },
		"md5":          func(b []byte) string { return inHex(b, md5.New()) },  //nolint:gosec // OpenTofu offers MD5
		"sha1":         func(b []byte) string { return inHex(b, sha1.New()) }, //nolint:gosec // OpenTofu offers SHA-1
		"sha256":       func(b []byte) string { return inHex(b, sha256.New()) },
		"sha512":       func(b []byte) string { return inHex(b, sha512.New()) },
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

// coalesceFunction returns OpenTofu's coalesce function. Unlike cty's, it skips empty strings.
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

// replaceFunction returns OpenTofu's replace function, which treats /…/ as a regular expression.
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

// identityFunction implements sensitive and nonsensitive. It returns its argument unchanged, because
// values in the settings are never shown, whether they are marked or not.
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
		return "", &callError{"the argument is not UTF-8 text in base64" + orItself}
	}
	return string(b), nil
}

// callError is the reason why a function call failed. It contains no values from the text.
type callError struct{ text string }

func (e *callError) Error() string { return e.text }

func decodeURL(s string) (string, error) {
	text, err := url.QueryUnescape(s)
	if err != nil {
		return "", &callError{"the argument is not URL-encoded"}
	}
	return text, nil
}

// testFunction returns a function that compares two strings.
func testFunction(f func(a, b string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var errArgument = errors.New("of another type, or out of range") // ofCall replaces this message

// valueFunction returns a function that takes at least a given number of arguments of any type. The
// first argument must not be null.
func valueFunction(least int, f func(args []cty.Value) (cty.Value, error)) function.Function {
	call := func(args []cty.Value) (cty.Value, error) {
		switch {
		case len(args) < least:
			return cty.NilVal, &callError{"an argument is missing; add it"}
		case args[0].IsNull():
			return cty.NilVal, errArgument
		}
		return f(args)
	}
	return typedByValue(call, function.Spec{
		VarParam: &function.Parameter{Name: "values", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
	})
}

// typedByValue returns a function whose result type is known only after a call with known
// arguments.
func typedByValue(call func(args []cty.Value) (cty.Value, error), spec function.Spec) function.Function {
	known := func(args []cty.Value) (cty.Value, error) {
		if slices.ContainsFunc(args, func(v cty.Value) bool { return !v.IsKnown() }) {
			return cty.DynamicVal, nil
		}
		return call(args)
	}
	spec.Type = func(args []cty.Value) (cty.Type, error) {
		v, err := known(args)
		if err != nil {
			return cty.NilType, err
		}
		return v.Type(), nil
	}
	spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) { return known(args) }
	return function.New(&spec)
}

// lookUp returns an element of a map or an object, or the third argument if there is no such
// element.
func lookUp(args []cty.Value) (cty.Value, error) {
	in, t := args[0], args[0].Type()
	key, err := convert.Convert(args[1], cty.String)
	switch {
	case err != nil, key.IsNull(), len(args) > 3, !t.IsMapType() && !t.IsObjectType():
		return cty.NilVal, errArgument
	case t.IsObjectType() && t.HasAttribute(key.AsString()):
		return in.GetAttr(key.AsString()), nil
	case t.IsMapType() && in.HasIndex(key).True():
		return in.Index(key), nil
	case len(args) < 3:
		return cty.NilVal, &callError{"the value has no such element; pass a default as the third argument"}
	case t.IsMapType():
		return convert.Convert(args[2], t.ElementType())
	}
	return args[2], nil
}

// one returns the only element of its argument, or null if the argument is empty.
func one(args []cty.Value) (cty.Value, error) {
	in, t := args[0], args[0].Type()
	isTuple := t.IsTupleType()
	if len(args) > 1 || !isTuple && !t.IsListType() && !t.IsSetType() {
		return cty.NilVal, errArgument
	}
	switch all := in.AsValueSlice(); {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1:
		return cty.NilVal, &callError{"the argument has more than one element"}
	case isTuple:
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	return cty.NullVal(t.ElementType()), nil
}

func length(args []cty.Value) (cty.Value, error) {
	switch v := args[0]; {
	case len(args) > 1:
	case v.Type() == cty.String:
		return stdlib.Strlen(v)
	case v.Type().IsObjectType():
		return cty.NumberIntVal(int64(len(v.Type().AttributeTypes()))), nil
	case v.CanIterateElements():
		return cty.NumberIntVal(int64(v.LengthInt())), nil
	}
	return cty.NilVal, errArgument
}

// decoder returns a function that decodes a text with f, unless expect returns an error for the
// text.
func decoder(f function.Function, expect func(text []byte) error) function.Function {
	decode := func(args []cty.Value) (cty.Value, error) {
		if err := expect([]byte(args[0].AsString())); err != nil {
			return cty.NilVal, &callError{"the argument cannot be decoded: " + err.Error()}
		}
		return f.Call(args)
	}
	return typedByValue(decode, function.Spec{Params: []function.Parameter{{Name: "text", Type: cty.String}}})
}

// expectYAML returns an error if the text has too many aliases, each of which may double the size of
// the value, or too many characters that may open a nesting level.
func expectYAML(text []byte) error {
	const most = 10_000
	begins := 0
	for _, c := range text {
		if strings.IndexByte("[{-?", c) >= 0 {
			begins++
		}
	}
	switch {
	case begins > most:
		return fmt.Errorf("it may be nested too deeply: it has more than %d of the characters [, {, - and ?", most)
	case manyAliases.Match(text):
		return errors.New("it has more than 8 aliases (*name); replace them with their values")
	}
	return nil
}

var manyAliases = lazyregexp.New(`(?s)((^|[\s\[{,:?-])\*[^\s,\]}].*){9}`)

func fileExistsFunction(dir string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, err := world.ExpandHome(from(dir, args[0].AsString()))
			if err != nil {
				return cty.NilVal, &callError{err.Error()}
			}
			info, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return cty.False, nil
			case err != nil || !info.Mode().IsRegular():
				return cty.NilVal, &callError{"the argument is not the path of a readable file"}
			}
			return cty.True, nil
		},
	})
}

// templateFunction returns OpenTofu's templatefile function. The file may use every function that
// the settings may use, except templatefile.
func templateFunction(dir string) function.Function {
	render := func(args []cty.Value) (cty.Value, error) {
		if t := args[1].Type(); !t.IsObjectType() && !t.IsMapType() {
			return cty.NilVal, &callError{"the second argument is not an object; pass an object with the variables of the template"}
		}
		text, err := readText(dir, args[0].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		if err := ExpectTemplate([]byte(text)); err != nil {
			return cty.NilVal, &callError{"the file cannot be used: " + err.Error()}
		}
		expr, diags := hclsyntax.ParseTemplate([]byte(text), "", hcl.InitialPos)
		if diags.HasErrors() {
			return cty.NilVal, &callError{"the file is not a valid template; see line " + strconv.Itoa(position(*diags[0].Subject).Line)}
		}
		callable := functions(dir)
		for name, f := range ofFiles(dir) {
			callable[name] = f
		}
		delete(callable, "templatefile")
		v, diags := expr.Value(&hcl.EvalContext{Variables: args[1].AsValueMap(), Functions: callable})
		if diags.HasErrors() {
			return cty.NilVal, &callError{"a variable or a function of the template is not available, or a value has the wrong " +
				"type; see line " +
				strconv.Itoa(position(*diags[0].Subject).Line)}
		}
		return v, nil
	}
	return typedByValue(render, function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "variables", Type: cty.DynamicPseudoType}},
	})
}

// from returns path. If path is relative, from joins it to dir.
func from(dir, path string) string {
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
		path = filepath.Join(dir, path)
	}
	return path
}

func readText(dir, path string) (string, error) {
	b, err := readBytes(dir, path)
	switch {
	case err != nil:
		return "", err
	case recognize.IsUTF16(b):
		return "", &callError{shown(path) + " is UTF-16 text, perhaps from > in PowerShell; save it as UTF-8"}
	case !utf8.Valid(b):
		return "", &callError{shown(path) + " is not UTF-8 text"}
	}
	return string(b), nil
}

func readBytes(dir, path string) ([]byte, error) {
	b, err := keyfile.Read(from(dir, path))
	if err != nil {
		begins := ""
		if dir == "" && !filepath.IsAbs(path) && errors.Is(err, fs.ErrNotExist) {
			begins = ". A relative path starts from the working directory, not from the folder of the settings"
		}
		return nil, &callError{fmt.Sprintf("%s cannot be read: %v%s", shown(path), errors.Unwrap(err), begins)}
	}
	return b, nil
}

// shown returns the path in quotation marks, for an error. It does not repeat a text that does not
// look like a path, because the text may be a misplaced secret.
func shown(path string) string {
	if recognize.IsPath(path) {
		return fmt.Sprintf("%q", path)
	}
	return "the named file"
}
