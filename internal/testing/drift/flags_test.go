package drift

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// flags are the flags of a command, each with "=" if a value follows it, "" if none does, and "?" if nothing says so.
type flags map[string]string

// commands returns the commands that a CLI has by its source, hidden ones too, with their flags.
func (s *source) commands() (map[string]flags, error) {
	all := map[string]flags{}
	var wrong error
	for _, folder := range []string{".", "cmd/tofu"} { // Terraform's, OpenTofu's
		files, err := s.parse(folder)
		if err != nil {
			continue
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				name, factory := registered(n)
				if name == "" {
					return true
				}
				found := flags{}
				runs := s.made(factory)
				if _, ok := factory.(*ast.FuncLit); ok && len(runs) == 0 {
					wrong = errors.Join(wrong, fmt.Errorf("%s has no method Run: the source is not built as it was", name))
				}
				for _, command := range runs {
					w := walk{source: s, found: found, mentioned: flags{}, seen: map[string]bool{}, called: map[*ast.Ident]bool{}}
					w.body(command, nil)
					maps.Copy(w.mentioned, found) // a definition says more than a mention
					found = w.mentioned
					wrong = errors.Join(wrong, w.err)
				}
				all[name] = found
				return false
			})
		}
	}
	if _, ok := all["plan"]["out"]; !ok {
		return nil, errors.New("plan -out was not found: the source is not built as it was")
	}
	return all, wrong
}

// registered returns the name and the factory of a command, if the map of all commands gets one here.
func registered(n ast.Node) (name string, factory ast.Expr) {
	var key, value ast.Expr
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		key, value = n.Key, n.Value
	case *ast.AssignStmt:
		if at, ok := n.Lhs[0].(*ast.IndexExpr); ok && len(n.Lhs) == 1 {
			key, value = at.Index, n.Rhs[0]
		}
	}
	text, ok := key.(*ast.BasicLit)
	if !ok || !commandName.MatchString(text.Value) {
		return "", nil
	}
	switch value.(type) {
	case *ast.FuncLit, *ast.CallExpr:
		return strings.Trim(text.Value, `"`), value
	}
	return "", nil
}

var (
	commandName = regexp.MustCompile(`^"[a-z][a-z -]*"$`)
	flagName    = regexp.MustCompile(`^--?([a-z][a-z0-9-]*)(=|$)`)
)

// made returns the Run methods of the commands that an expression mentions.
func (s *source) made(factory ast.Expr) (runs []*types.Func) {
	scope := s.packages[s.module+"/internal/command"].Scope()
	ast.Inspect(factory, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := sel.X.(*ast.Ident); !ok || of.Name != "command" || scope.Lookup(sel.Sel.Name) == nil {
			return true
		}
		t := types.NewPointer(scope.Lookup(sel.Sel.Name).Type())
		if run, _, _ := types.LookupFieldOrMethod(t, true, scope.Lookup(sel.Sel.Name).Pkg(), "Run"); run != nil {
			if fn, ok := run.(*types.Func); ok {
				runs = append(runs, fn)
			}
		}
		return true
	})
	return runs
}

// walk follows the calls of a command, and finds the flags that are defined on the way.
type walk struct {
	*source

	found     flags
	mentioned flags // those that a loop over all words looks for
	seen      map[string]bool
	called    map[*ast.Ident]bool
	err       error
}

// known are the values of parameters, of which some are constants. Another is nil, or is not.
type known map[types.Object]constant.Value

var (
	isNil  = constant.MakeString("\x00nil")
	notNil = constant.MakeString("\x00not nil")
)

// body walks a function whose parameters have these values.
func (w *walk) body(fn *types.Func, arguments []constant.Value) {
	decl := w.bodies[fn.Origin()]
	if decl == nil || w.seen[fmt.Sprint(fn.FullName(), arguments)] {
		return
	}
	w.seen[fmt.Sprint(fn.FullName(), arguments)] = true
	values, at := known{}, 0
	for _, field := range decl.Type.Params.List {
		for _, name := range field.Names {
			if at < len(arguments) && arguments[at] != nil {
				values[w.info.Defs[name]] = arguments[at]
			}
			at++
		}
	}
	w.visit(decl.Body, fn, values)
}

// visit looks at a part of a function. It leaves a branch out if a constant says so.
func (w *walk) visit(part ast.Node, fn *types.Func, values known) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			v := w.value(n.Cond, values)
			if v == nil || v.Kind() != constant.Bool {
				return true
			}
			if n.Init != nil {
				w.visit(n.Init, fn, values)
			}
			if constant.BoolVal(v) {
				w.visit(n.Body, fn, values)
			} else if n.Else != nil {
				w.visit(n.Else, fn, values)
			}
			return false
		case *ast.CallExpr:
			w.call(n, fn, values)
		case *ast.Ident: // a function that is given away, to be called
			if given, ok := w.info.Uses[n].(*types.Func); ok && !w.called[n] {
				w.body(given, nil)
			}
		case *ast.AssignStmt: // prefix := "-flag="
			for i, right := range n.Rhs {
				name, ok := n.Lhs[i].(*ast.Ident)
				if v := w.value(right, values); ok && n.Tok == token.DEFINE && v != nil && v.Kind() == constant.String &&
					flagName.MatchString(constant.StringVal(v)) {
					values[w.info.Defs[name]] = v
				}
			}
		case *ast.CaseClause: // of a loop over all words
			for _, e := range n.List {
				w.mention(w.value(e, values))
			}
		case *ast.KeyValueExpr: // to Commands: those below have their own Run
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Commands"
		}
		return true
	})
}

func (w *walk) call(call *ast.CallExpr, fn *types.Func, values known) {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return
	}
	if called, ok := w.info.Uses[name].(*types.Func); ok {
		w.called[name] = true
		var arguments []constant.Value
		for _, a := range call.Args {
			arguments = append(arguments, w.value(a, values))
		}
		w.body(called, arguments)
		return
	}
	if name.Name == "HasPrefix" && len(call.Args) == 2 {
		w.mention(w.value(call.Args[1], values))
	}
	at, takes := definition(name.Name, len(call.Args))
	if at < 0 {
		return
	}
	v := w.value(call.Args[at], values)
	if v == nil || v.Kind() != constant.String {
		if name.Name != "Func" && name.Name != "String" { // of other packages, too
			w.err = errors.Join(w.err, fmt.Errorf("%s: a flag has a computed name", w.files.Position(call.Pos())))
		}
		return
	}
	if t := w.info.TypeOf(call.Args[0]); name.Name == "Var" && t != nil {
		if is, _, _ := types.LookupFieldOrMethod(t, true, fn.Pkg(), "IsBoolFlag"); is != nil {
			takes = ""
		}
	}
	w.found[constant.StringVal(v)] = takes
}

// mention notes a flag that the source looks for among all words.
func (w *walk) mention(v constant.Value) {
	if v != nil && v.Kind() == constant.String {
		if m := flagName.FindStringSubmatch(constant.StringVal(v)); m != nil {
			w.mentioned[m[1]] = "?"
		}
	}
}

// definition returns which argument of a method is the name of a flag, as the methods of Go's package
// flag have it, and what follows the flag; -1 if the method defines none.
func definition(method string, arguments int) (at int, takes string) {
	kind, isVar := strings.CutSuffix(method, "Var")
	kinds := []string{"Bool", "Duration", "Float64", "Int", "Int64", "String", "Uint", "Uint64"}
	if at = 0; isVar {
		at = 1
	}
	switch {
	case isVar && kind == "" && arguments == 3, isVar && arguments == 4 && slices.Contains(append(kinds, "Text"), kind):
	case !isVar && arguments == 3 && slices.Contains(append(kinds, "Func", "BoolFunc"), kind):
	default:
		return -1, ""
	}
	if strings.HasPrefix(method, "Bool") {
		return at, ""
	}
	return at, "="
}

// value returns the constant that an expression is, or nil.
func (w *walk) value(e ast.Expr, values known) constant.Value {
	if tv := w.info.Types[e]; tv.Value != nil {
		return tv.Value
	}
	switch e := e.(type) {
	case *ast.Ident:
		if _, ok := w.info.Uses[e].(*types.Nil); ok {
			return isNil
		}
		return values[w.info.Uses[e]]
	case *ast.ParenExpr:
		return w.value(e.X, values)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return notNil
		}
		if v := w.value(e.X, values); v != nil && v.Kind() == constant.Bool && e.Op == token.NOT {
			return constant.UnaryOp(token.NOT, v, 0)
		}
	case *ast.BinaryExpr:
		return w.binary(e, values)
	}
	return nil
}

func (w *walk) binary(e *ast.BinaryExpr, values known) constant.Value {
	x, y := w.value(e.X, values), w.value(e.Y, values)
	switch e.Op {
	case token.EQL, token.NEQ:
		if x != nil && y != nil && x.Kind() == y.Kind() {
			return constant.MakeBool(constant.Compare(x, e.Op, y))
		}
	case token.AND, token.OR:
		if x != nil && y != nil && x.Kind() == constant.Int && y.Kind() == constant.Int {
			return constant.BinaryOp(x, e.Op, y)
		}
	case token.LAND, token.LOR:
		for _, v := range []constant.Value{x, y} { // one that decides alone
			if v != nil && v.Kind() == constant.Bool && constant.BoolVal(v) == (e.Op == token.LOR) {
				return v
			}
		}
	}
	return nil
}
