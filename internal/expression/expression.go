// Package expression evaluates conditions over a trial's counts, such as `effects <= wanted`. It
// is the door of the expression library; what it offers are the names of the JSON result and
// ordinary arithmetic, nothing that reaches outside.
package expression

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// maxLength bounds an expression, in bytes: it comes from an untrusted file.
const maxLength = 500

// Values are what an expression can name. The keys are those of the JSON result.
type Values struct {
	Operations            int     `expr:"operations"`
	Wanted                int     `expr:"wanted"`
	Sends                 int     `expr:"sends"`
	Arrivals              int     `expr:"arrivals"`
	Effects               int     `expr:"effects"`
	EffectsWhenCallerDone int     `expr:"effects_when_caller_done"`
	Duplicates            int     `expr:"duplicates"`
	Lost                  int     `expr:"lost"`
	FalseFailures         int     `expr:"false_failures"`
	Late                  int     `expr:"late"`
	Amplification         float64 `expr:"amplification"`
	OK                    int     `expr:"ok"`
	Failed                int     `expr:"failed"`
	Unknown               int     `expr:"unknown"`
	CallerDoneMs          int64   `expr:"caller_done_ms"`
	SettledMs             int64   `expr:"settled_ms"`
	Overlap               int     `expr:"overlap"`
	FaultsFired           int     `expr:"faults_fired"`
}

// Names lists what an expression can name.
func Names() []string { return names }

var names = func() (out []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Values]()) {
		out = append(out, f.Tag.Get("expr"))
	}
	return out
}()

// get returns the value of one of [Names].
func (v Values) get(name string) any {
	return reflect.ValueOf(v).Field(slices.Index(names, name)).Interface()
}

// Condition is a compiled expression that is true or false.
type Condition struct {
	source  string
	names   []string
	program *vm.Program
}

// UnknownNameError says that an expression names something that there is not.
type UnknownNameError struct{ Name string }

func (e *UnknownNameError) Error() string { return fmt.Sprintf("unknown name %q", e.Name) }

// Compile reads an expression. The error is an [*UnknownNameError] where a name is not one of
// [Names].
func Compile(source string) (*Condition, error) {
	if len(source) > maxLength {
		return nil, fmt.Errorf("longer than %d bytes", maxLength)
	}
	tree, err := parser.Parse(source)
	if err != nil {
		return nil, errors.New(firstLine.FindString(err.Error()))
	}
	v := &visitor{}
	ast.Walk(&tree.Node, v)
	if v.err != nil {
		return nil, v.err
	}
	program, err := expr.Compile(source, expr.Env(Values{}), expr.AsBool(), expr.DisableAllBuiltins())
	if err != nil {
		return nil, errors.New(firstLine.FindString(err.Error()))
	}
	return &Condition{source: source, names: v.names, program: program}, nil
}

var firstLine = regexp.MustCompile(`^[^\n]*`)

// visitor collects the names in an expression and refuses what is no arithmetic over them.
type visitor struct {
	names []string
	err   error
}

func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if !slices.Contains(names, n.Value) {
			if v.err == nil {
				v.err = &UnknownNameError{n.Value}
			}
			return
		}
		if !slices.Contains(v.names, n.Value) {
			v.names = append(v.names, n.Value)
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.UnaryNode, *ast.ConditionalNode:
	case *ast.BinaryNode:
		// Ranges and text matching build values of any size; a condition over counts needs none.
		if !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "and", "&&", "or", "||"}, n.Operator) && v.err == nil {
			v.err = fmt.Errorf("the operator %q is not allowed", n.Operator)
		}
	default:
		if v.err == nil {
			v.err = errors.New("only names, numbers, comparisons, arithmetic, and, or, not")
		}
	}
}

// Holds evaluates the condition. actual shows the values of the names in it.
func (c *Condition) Holds(values Values) (held bool, actual string, err error) {
	out, err := expr.Run(c.program, values)
	if err != nil {
		return false, "", fmt.Errorf("evaluate %q: %w", c.source, err)
	}
	held, _ = out.(bool)
	for i, name := range c.names {
		if i > 0 {
			actual += ", "
		}
		actual += fmt.Sprintf("%s = %v", name, values.get(name))
	}
	return held, actual, nil
}
