// Package expression evaluates conditions over a trial's counts, such as `effects <= wanted`. It
// is the door of the expression library; what it offers are the names of the JSON result and
// ordinary arithmetic, nothing that reaches outside.
package expression

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
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
	Lookups               int     `expr:"lookups"`
	Effects               int     `expr:"effects"`
	EffectsWhenCallerDone int     `expr:"effects_when_caller_done"`
	Duplicates            int     `expr:"duplicates"`
	Lost                  int     `expr:"lost"`
	FalseFailures         int     `expr:"false_failures"`
	Late                  int     `expr:"late"`
	LedgerDuplicates      int     `expr:"ledger_duplicates"`
	LostUpdates           int     `expr:"lost_updates"`
	TurnedAway            int     `expr:"turned_away"`
	Amplification         float64 `expr:"amplification"`
	OK                    int     `expr:"ok"`
	Failed                int     `expr:"failed"`
	Unknown               int     `expr:"unknown"`
	CallerDoneMs          int64   `expr:"caller_done_ms"`
	LongestHoldMs         int64   `expr:"longest_hold_ms"`
	GoodputPerS           float64 `expr:"goodput_per_s"`
	PeakStarts            int     `expr:"peak_starts"`
	RecoveredAfterMs      float64 `expr:"recovered_after_ms"`
	GoodputAfterPerS      float64 `expr:"goodput_after_per_s"`
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
	names   []string
	program *vm.Program
}

// Error says what is wrong with an expression, where in it, and what would be right.
type Error struct {
	What    string
	Hint    string
	Unknown string // the name that there is not, "" when something else is wrong
	At      int    // characters before the place
}

func (e *Error) Error() string { return e.What }

// Compile reads an expression. The error is an [*Error].
func Compile(source string) (*Condition, error) {
	if len(source) > maxLength {
		return nil, &Error{What: fmt.Sprintf("longer than %d bytes", maxLength)}
	}
	tree, err := parser.Parse(source)
	if err != nil {
		if e := lasts(source); e != nil {
			return nil, e
		}
		e := explain(err)
		if e.What == incomplete {
			e.At = utf8.RuneCountInString(source)
		}
		return nil, e
	}
	v := &visitor{operations: map[int]string{}}
	ast.Walk(&tree.Node, v)
	if v.err != nil {
		return nil, v.err
	}
	if len(v.names) == 0 {
		return nil, &Error{What: "it looks at nothing", Hint: compareHint}
	}
	for _, d := range v.divisors {
		if zero(d.Right) {
			return nil, &Error{What: "it divides by zero", Hint: compareHint, At: d.Location().From}
		}
	}
	options := []expr.Option{expr.Env(Values{}), expr.AsBool(), expr.DisableAllBuiltins()}
	// First as it is written, for what is wrong with it; then with its arithmetic in our hands.
	if _, err := expr.Compile(source, options...); err != nil {
		return nil, explain(err)
	}
	program, err := expr.Compile(source, append(options,
		expr.Patch(calculator(v.operations)),
		expr.Function("calculate", calculate, new(func(operator string, a, b any, text string) float64)),
	)...)
	if err != nil {
		return nil, explain(err)
	}
	return &Condition{names: v.names, program: program}, nil
}

// zero reports whether a divisor is 0 whatever is counted.
func zero(divisor ast.Node) bool {
	named := &visitor{operations: map[int]string{}}
	ast.Walk(&divisor, named)
	if len(named.names) > 0 {
		return false
	}
	value, err := expr.Eval(divisor.String(), nil)
	return err != nil || float(value) == 0
}

var lasting = regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ms|s|m|h)\b`)

// lasts finds a time with its unit, which is how a scenario file writes it.
func lasts(source string) *Error {
	at := lasting.FindStringIndex(source)
	if at == nil {
		return nil
	}
	text := source[at[0]:at[1]]
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil
	}
	return &Error{
		What: fmt.Sprintf("%q is no number", text),
		Hint: fmt.Sprintf("times are numbers of milliseconds: caller_done_ms < %d", d.Milliseconds()),
		At:   utf8.RuneCountInString(source[:at[0]]),
	}
}

// A calculator puts a call of calculate in place of every operation, with its text: by the place of the operator.
type calculator map[int]string

func (c calculator) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains(arithmetic, n.Operator) {
		return
	}
	ast.Patch(node, &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: "calculate"},
		Arguments: []ast.Node{&ast.StringNode{Value: n.Operator}, n.Left, n.Right, &ast.StringNode{Value: c[n.Location().From]}},
	})
}

// undefined is why an expression has no value.
type undefined string

func (u undefined) Error() string { return string(u) }

// calculate is what an operation comes to: (operator, a, b, text). A division by zero is an error, and so is what
// no number can hold: comparing it would be true or false all the same. The text is that of a divisor, else of the
// operation. What never came is later than anything, however much is added to it.
func calculate(args ...any) (any, error) {
	operator, text := args[0].(string), args[3].(string)
	a, b := float(args[1]), float(args[2])
	var out float64
	switch operator {
	case "+":
		out = a + b
	case "-":
		out = a - b
	case "*":
		out = a * b
	case "/", "%":
		if b == 0 {
			return nil, undefined(text + " is 0, and nothing is divided by it")
		}
		if out = a / b; operator == "%" {
			out = math.Mod(a, b)
		}
	}
	if math.IsNaN(out) || math.IsInf(out, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return nil, undefined(text + " is no number here")
	}
	return out, nil
}

func float(number any) float64 {
	switch v := reflect.ValueOf(number); {
	case v.CanInt():
		return float64(v.Int())
	case v.CanFloat():
		return v.Float()
	}
	return math.NaN()
}

const (
	incomplete  = "it is not complete"
	onlyHint    = "an expression has names, numbers, comparisons, arithmetic, and, or, not"
	compareHint = "compare counts, for example effects <= wanted"
)

var (
	unexpected = regexp.MustCompile(`^unexpected token \w+\("(.+)"\)$`)
	mismatch   = regexp.MustCompile(`^invalid operation: (\S+) \(mismatched types? (\w+)(?: and (\w+))?\)$`)
)

// explain puts what the library says into the words of somebody who writes a scenario.
func explain(err error) *Error {
	e := &Error{What: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		e.What, e.At = at.Message, at.From
	}
	m := mismatch.FindStringSubmatch(e.What)
	switch {
	case e.What == "unexpected token EOF", e.What == "unexpected end of expression":
		e.What, e.Hint = incomplete, compareHint
	case e.What == `unexpected token Operator("=")`:
		e.What, e.Hint = "= does not compare", "write =="
	case unexpected.MatchString(e.What):
		e.What, e.Hint = fmt.Sprintf("%q does not belong here", unexpected.FindStringSubmatch(e.What)[1]), onlyHint
	case strings.HasPrefix(e.What, "expected bool, but got"):
		e.What, e.Hint = "it is a number, neither true nor false", compareHint
	case strings.HasPrefix(e.What, "non-bool expression"):
		e.What, e.Hint = "what stands before ? is a number, neither true nor false", compareHint
	case m != nil && m[3] == "":
		e.What, e.Hint = fmt.Sprintf("%s does not go with %s", m[1], kind(m[2])), compareHint
	case m != nil:
		e.What, e.Hint = fmt.Sprintf("%s does not go with %s and %s", m[1], kind(m[2]), kind(m[3])), compareHint
	default:
		e.What, e.Hint = "this cannot be read", onlyHint
	}
	return e
}

// kind is what people call a type.
func kind(name string) string {
	if name == "bool" {
		return "a condition"
	}
	return "a number"
}

// arithmetic are the operators that make a number of two.
var arithmetic = []string{"+", "-", "*", "/", "%"}

// headings are what a report or a scenario file calls a name otherwise.
var headings = map[string]string{
	"orders": "effects", "at_end": "effects_when_caller_done", "ampl": "amplification", "sent": "sends", "arrived": "arrivals",
	"asked": "lookups", "peak": "peak_starts", "goodput": "goodput_per_s", "back_after": "recovered_after_ms", "intents": "wanted",
	"caller_done": "caller_done_ms", "settled": "settled_ms", "longest_hold": "longest_hold_ms", "too_many": "duplicates",
	"belief": "ok, failed or unknown", "beliefs": "ok, failed or unknown",
}

// meant is what to write for a name that there is not, "" where nobody knows.
func meant(name string) string {
	if hint := headings[strings.Trim(strings.ToLower(name), ".")]; hint != "" {
		return "write " + hint
	}
	return ""
}

// visitor collects the names in an expression and refuses what is no arithmetic over them.
type visitor struct {
	names      []string
	operations map[int]string    // the text of each operation, of a division that of its divisor, by the place of the operator
	divisors   []*ast.BinaryNode // the divisions
	err        *Error
}

func (v *visitor) refuse(at ast.Node, what string) {
	// The outermost says most, and all of them more than a name that is unknown. A text may be no
	// more than the name of what it stands in.
	if _, text := at.(*ast.StringNode); !text || v.err == nil || v.err.Unknown != "" {
		v.err = &Error{What: what, Hint: onlyHint, At: at.Location().From}
	}
}

func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if !slices.Contains(names, n.Value) {
			if v.err == nil {
				v.err = &Error{What: fmt.Sprintf("there is no %q", n.Value), Hint: meant(n.Value), Unknown: n.Value, At: n.Location().From}
			}
			return
		}
		if !slices.Contains(v.names, n.Value) {
			v.names = append(v.names, n.Value)
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.UnaryNode, *ast.ConditionalNode:
	case *ast.BinaryNode:
		// Ranges and text matching build values of any size; a condition over counts needs none.
		if !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "and", "&&", "or", "||"}, n.Operator) {
			v.refuse(n, fmt.Sprintf("the operator %s is not allowed", n.Operator))
		}
		if slices.Contains(arithmetic, n.Operator) {
			text := n.String()
			if n.Operator == "/" || n.Operator == "%" {
				text = n.Right.String()
				v.divisors = append(v.divisors, n)
			}
			v.operations[n.Location().From] = text
		}
	case *ast.MemberNode:
		if !v.member(n) {
			v.refuse(n, "this is not allowed")
		}
	case *ast.StringNode:
		v.refuse(n, "text is not allowed")
	case *ast.CallNode, *ast.BuiltinNode:
		v.refuse(n, "a call is not allowed")
	default:
		v.refuse(n, "this is not allowed")
	}
}

// member takes what the JSON result calls counts.effects: an expression names the last of it alone. It reports
// whether the node is that.
func (v *visitor) member(n *ast.MemberNode) bool {
	parent, ok := n.Node.(*ast.IdentifierNode)
	child, text := n.Property.(*ast.StringNode)
	if !ok || !text || n.Optional || slices.Contains(names, parent.Value) || strings.HasPrefix(parent.Value, "$") {
		return false
	}
	hint := meant(child.Value)
	if slices.Contains(names, child.Value) {
		hint = "write " + child.Value
	}
	v.err = &Error{
		What: fmt.Sprintf("there is no %q", parent.Value+"."+child.Value), Hint: hint, Unknown: child.Value, At: parent.Location().From,
	}
	return true
}

// Names lists what the condition names, each once.
func (c *Condition) Names() []string { return c.names }

// Timed reports whether the condition names a time.
func (c *Condition) Timed() bool {
	return slices.ContainsFunc(c.names, func(name string) bool {
		return strings.HasPrefix(name, "peak_") || strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_per_s")
	})
}

// Holds evaluates the condition. actual shows the values of the names in it. The error says why it is neither true
// nor false: "lost is 0, and nothing is divided by it".
func (c *Condition) Holds(values Values) (held bool, actual string, err error) {
	out, err := expr.Run(c.program, values)
	var none undefined
	switch {
	case errors.As(err, &none):
		return false, "", none
	case err != nil:
		return false, "", explain(err)
	}
	held, _ = out.(bool)
	for i, name := range c.names {
		if i > 0 {
			actual += ", "
		}
		value := values.get(name)
		if f, ok := value.(float64); ok && math.IsInf(f, 1) {
			value = "never"
		}
		actual += fmt.Sprintf("%s = %v", name, value)
	}
	return held, actual, nil
}
