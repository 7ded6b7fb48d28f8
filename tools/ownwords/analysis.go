package main

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const module = "github.com/statecrypt/terraform-provider-statecrypt/"

func run(pass *analysis.Pass) (any, error) {
	path := strings.TrimPrefix(strings.TrimSuffix(pass.Pkg.Path(), "_test"), module)
	files := slices.DeleteFunc(slices.Clone(pass.Files), func(file *ast.File) bool {
		return strings.HasSuffix(pass.Fset.File(file.FileStart).Name(), "_test.go")
	})
	if strings.HasPrefix(path, "internal/testing/") || path == "internal/auth/azureauth/azureauthtest" ||
		slices.ContainsFunc(files, importsTesting) {
		return nil, nil // only tests import such packages
	}
	if !speaks(path) {
		for _, file := range files {
			reportVoice(pass, file)
		}
	}
	t := texts{path, pass.Pkg, pass.TypesInfo, map[types.Object]bool{}}
	for t.spread(files) {
	}
	read := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			name := path + "." + nameOf(decl)
			for _, at := range t.decisions(decl) {
				if read[name] = true; others[name] == "" {
					pass.Reportf(at, "this decides by the text of an error: have a type, a sentinel or a fact for it (or, for an error of "+
						"others, list %s)", name)
				}
			}
		}
	}
	for name := range others {
		if of, _, _ := strings.Cut(name, "."); of == path && !read[name] && len(files) > 0 {
			pass.Reportf(files[0].Package, "%s is listed, and decides nothing by the text of an error", name)
		}
	}
	return nil, nil
}

// speaks reports whether a package may use the wording of one program. Stores may, because only the command opens them.
func speaks(path string) bool {
	programs := []string{"cmd", "internal/provider", "internal/wrap", "internal/store", "internal/shared/fault"}
	return slices.ContainsFunc(programs, func(of string) bool {
		return path == of || strings.HasPrefix(path, of+"/")
	})
}

// ofPrograms matches words in a sentence that are meant for the users of one program. The prefix TF_VAR_ alone does not
// match, because it is just a name.
var ofPrograms = regexp.MustCompile(`provider block|provider's (credentials )?block|(^|[^\w-])-config\b|\s\S*TF_VAR_|TF_VAR_\S*\s`)

// reportVoice reports sentences with words for the users of one program.
func reportVoice(pass *analysis.Pass, root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || isDoc(pass.TypesInfo, n) {
			return !ok
		}
		sentence, others := wording(pass.TypesInfo, e)
		if found := ofPrograms.FindString(sentence); found != "" {
			pass.Reportf(e.Pos(), "%q is a word of one program: write {settings} or {credentials}, which its voice fills", strings.TrimSpace(found))
		}
		if sentence == "" {
			return true
		}
		for _, other := range others {
			reportVoice(pass, other)
		}
		return false
	})
}

// wording returns the text of a string expression that is written in one or more parts, or an empty string for other
// expressions. It also returns the parts that are not constant strings.
func wording(info *types.Info, e ast.Expr) (text string, others []ast.Expr) {
	if value := info.Types[e].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value), nil
	}
	sum, ok := e.(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD || !isString(info.TypeOf(sum)) {
		return "", []ast.Expr{e}
	}
	left, ofLeft := wording(info, sum.X)
	right, ofRight := wording(info, sum.Y)
	return cmp.Or(left, "…") + cmp.Or(right, "…"), append(ofLeft, ofRight...)
}

// isDoc reports whether a node is the Doc field of an attribute or a table, which belongs to the provider's
// documentation.
func isDoc(info *types.Info, n ast.Node) bool {
	literal, ok := n.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := literal.Key.(*ast.Ident)
	if !ok || key.Name != "Doc" {
		return false
	}
	field := info.ObjectOf(key)
	return field != nil && field.Pkg() != nil && field.Pkg().Path() == module+"encryption/attr"
}

func importsTesting(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"testing"` })
}

// nameOf returns the name of a function or, for a method, the type name and the method name. It returns an empty string
// for other declarations.
func nameOf(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	return types.ExprString(typ) + "." + f.Name.Name
}

// texts tracks the variables, fields, parameters and functions of a package that hold or return an error text, or a
// part of one.
type texts struct {
	path string
	pkg  *types.Package
	info *types.Info
	of   map[types.Object]bool
}

// spread follows the texts one step further. It reports whether it has found new ones.
func (t texts) spread(files []*ast.File) bool {
	before := len(t.of)
	for _, file := range files {
		for _, decl := range file.Decls {
			f, _ := decl.(*ast.FuncDecl)
			isListed := others[t.path+"."+nameOf(decl)] != "" // a listed function may do anything with the text
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						right := n.Rhs[min(i, len(n.Rhs)-1)]
						t.assign(left, right)
					}
				case *ast.ValueSpec:
					for i, value := range n.Values {
						t.assign(n.Names[min(i, len(n.Names)-1)], value)
					}
				case *ast.RangeStmt:
					t.assign(n.Key, n.X)
					t.assign(n.Value, n.X)
				case *ast.KeyValueExpr:
					t.assign(n.Key, n.Value)
				case *ast.CompositeLit:
					t.fill(n)
				case *ast.CallExpr:
					if !isListed {
						t.hand(n)
					}
				case *ast.ReturnStmt:
					for _, result := range n.Results {
						if f != nil && !isListed && t.isText(result) {
							t.of[t.info.Defs[f.Name]] = true
						}
					}
				}
				return true
			})
		}
	}
	return len(t.of) > before
}

// fill follows texts into unnamed fields of a struct literal.
func (t texts) fill(literal *ast.CompositeLit) {
	typ, ok := t.info.TypeOf(literal).Underlying().(*types.Struct)
	for i, element := range literal.Elts {
		if _, isNamed := element.(*ast.KeyValueExpr); ok && !isNamed && t.isText(element) {
			t.note(typ.Field(i))
		}
	}
}

func (t texts) assign(left, right ast.Expr) {
	if name, ok := left.(*ast.Ident); ok && t.isMade(right) {
		t.of[t.info.ObjectOf(name)] = true
	}
	if left == nil || !t.isText(right) {
		return
	}
	switch left := left.(type) {
	case *ast.Ident:
		t.note(t.info.ObjectOf(left))
	case *ast.SelectorExpr:
		t.note(t.info.ObjectOf(left.Sel))
	}
}

// isMade reports whether a value is a function that returns an error text.
func (t texts) isMade(value ast.Expr) (is bool) {
	if method, ok := value.(*ast.SelectorExpr); ok {
		return method.Sel.Name == "Error" && isError(t.info.TypeOf(method.X))
	}
	f, ok := value.(*ast.FuncLit)
	if !ok {
		return false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && slices.ContainsFunc(r.Results, t.isText) {
			is = true
		}
		return true
	})
	return is
}

func (t texts) note(o types.Object) {
	if o != nil && isString(o.Type()) {
		t.of[o] = true
	}
}

// hand follows a text into a function of the package.
func (t texts) hand(call *ast.CallExpr) {
	f, ok := t.called(call).(*types.Func)
	if !ok {
		return
	}
	params := f.Signature().Params()
	for i, arg := range call.Args {
		if params.Len() > 0 && t.isText(arg) {
			t.note(params.At(min(i, params.Len()-1)))
		}
	}
}

func (t texts) called(call *ast.CallExpr) types.Object {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return t.info.Uses[f]
	case *ast.SelectorExpr:
		return t.info.Uses[f.Sel]
	}
	return nil
}

// isText reports whether an expression is an error text, or is derived from one.
func (t texts) isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return t.isText(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (t.isText(e.X) || t.isText(e.Y))
	case *ast.SliceExpr:
		return t.isText(e.X)
	case *ast.IndexExpr:
		return t.isText(e.X)
	case *ast.Ident:
		return t.of[t.info.ObjectOf(e)]
	case *ast.SelectorExpr:
		return t.of[t.info.ObjectOf(e.Sel)]
	case *ast.CallExpr:
		return t.returnsText(e)
	}
	return false
}

// returnsText reports whether a call returns an error text. This is true for the method Error, for a function of the
// package that was found to return an error text, and for any function that takes such a text and returns a string. For
// a function of another package, it is enough that it takes an error and returns a string.
func (t texts) returnsText(call *ast.CallExpr) bool {
	if len(call.Args) == 1 && t.info.Types[call.Fun].IsType() { // a type conversion
		return (isString(t.info.TypeOf(call)) || isBytes(t.info.TypeOf(call))) && t.isText(call.Args[0])
	}
	o := t.called(call)
	if o != nil && t.of[o] {
		return true
	}
	isOther := o != nil && o.Pkg() != t.pkg
	result := t.info.TypeOf(call)
	if tuple, ok := result.(*types.Tuple); ok && tuple.Len() > 0 {
		result = tuple.At(0).Type()
	}
	if !isString(result) {
		return false
	}
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Error" && isError(t.info.TypeOf(selector.X)) {
		return true
	}
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return t.isText(arg) || isOther && isError(t.info.TypeOf(arg)) })
}

// isString reports whether a type is a string, or a list of strings. Named types do not count, because the code chooses
// their values.
func isString(typ types.Type) bool {
	switch u := types.Unalias(typ).(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0
	case *types.Slice:
		return isString(u.Elem())
	case *types.Signature: // an iterator, like the result of strings.SplitSeq
		return u.Params().Len() == 1 && u.Results().Len() == 0 && isYield(u.Params().At(0).Type())
	}
	return false
}

func isBytes(typ types.Type) bool { return typ.String() == "[]byte" }

func isYield(typ types.Type) bool {
	yield, ok := typ.Underlying().(*types.Signature)
	return ok && yield.Params().Len() == 1 && isString(yield.Params().At(0).Type())
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

func isError(typ types.Type) bool {
	return typ != nil && typ != types.Typ[types.UntypedNil] && types.Implements(typ, errorType)
}

// deciding lists the name prefixes of functions in packages strings and bytes that look for something in a text.
var deciding = []string{"Compare", "Contains", "Count", "Cut", "Equal", "Fields", "Has", "Index", "LastIndex", "Replace", "Split",
	"TrimPrefix", "TrimSuffix"}

// decisions returns the places in a declaration that depend on an error text.
func (t texts) decisions(decl ast.Decl) (at []token.Pos) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if compares[n.Op] && (t.isText(n.X) && !t.isEmpty(n.Y) || t.isText(n.Y) && !t.isEmpty(n.X)) {
				at = append(at, n.OpPos)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && t.isText(n.Tag) {
				at = append(at, n.Switch)
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, t.isText) {
				at = append(at, n.Case)
			}
		case *ast.IndexExpr:
			if t.isText(n.Index) {
				at = append(at, n.Lbrack)
			}
		case *ast.CallExpr:
			if t.decides(n) && slices.ContainsFunc(n.Args, t.isText) {
				at = append(at, n.Lparen)
			}
		}
		return true
	})
	return at
}

var compares = map[token.Token]bool{token.EQL: true, token.NEQ: true, token.LSS: true, token.GTR: true, token.LEQ: true, token.GEQ: true}

// isEmpty reports whether an expression is the empty string. Comparing with it does not depend on wording.
func (t texts) isEmpty(e ast.Expr) bool {
	value := t.info.Types[e].Value
	return value != nil && value.ExactString() == `""`
}

// decides reports whether a call searches a text: a function of package strings or bytes, the lookup in a table of
// service responses, a search in a slice, or a regular expression match.
func (t texts) decides(call *ast.CallExpr) bool {
	f, ok := t.called(call).(*types.Func)
	if !ok {
		return false
	}
	if f.Pkg() != nil && (f.Pkg().Path() == "strings" || f.Pkg().Path() == "bytes") {
		return slices.ContainsFunc(deciding, func(begin string) bool { return strings.HasPrefix(f.Name(), begin) })
	}
	if f.Pkg() != nil && f.Pkg().Path() == module+"internal/answers" {
		return f.Name() == "Find"
	}
	if f.Pkg() != nil && f.Pkg().Path() == "slices" {
		return strings.HasPrefix(f.Name(), "Contains") || strings.HasPrefix(f.Name(), "Index")
	}
	isOfRegexp := f.Signature().Recv() != nil || f.Pkg() != nil && f.Pkg().Path() == "regexp"
	return isOfRegexp && (f.Name() == "Match" || f.Name() == "MatchString" || strings.HasPrefix(f.Name(), "Find") ||
		strings.HasPrefix(f.Name(), "ReplaceAll"))
}
