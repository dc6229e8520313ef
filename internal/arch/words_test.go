package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestPackageComments demands of every package one comment that says what it is for.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	documented := map[string][]*source{}
	all := sources(t)
	for _, s := range all {
		documented[s.pkg] = append(documented[s.pkg], s)
	}
	for pkg, files := range documented {
		var docs []string
		code := slices.ContainsFunc(files, func(s *source) bool { return !s.test })
		for _, s := range files {
			if s.ast.Doc == nil || s.test && code {
				continue
			}
			docs = append(docs, s.name)
			want := "Package " + s.ast.Name.Name + " "
			if s.ast.Name.Name == "main" {
				want = "Retrylab " // a command's comment begins with its name
			}
			if !strings.HasPrefix(s.ast.Doc.Text(), want) {
				t.Errorf("%s: the comment of a package begins with %q", s.name, want)
			}
		}
		switch {
		case len(docs) == 0:
			t.Errorf("package %s has no comment", short(pkg))
		case len(docs) > 1:
			t.Errorf("package %s has a comment in several files: %s", short(pkg), strings.Join(docs, ", "))
		}
	}
}

// silent are the methods that say all in their name: what they do is laid down elsewhere.
var silent = []string{"Error", "Unwrap", "Is", "As"}

// TestExportedComments demands of every exported name outside tests a comment that begins with
// it. In a group of constants or variables a comment may be about several, or stand on the line.
func TestExportedComments(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if !d.Name.IsExported() || d.Recv != nil && (!ast.IsExported(receiver(d)) || slices.Contains(silent, d.Name.Name)) {
					continue
				}
				mustBegin(t, s, d, d.Doc, d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							doc := spec.Doc
							if doc == nil && !d.Lparen.IsValid() {
								doc = d.Doc
							}
							mustBegin(t, s, spec, doc, spec.Name.Name)
						}
					case *ast.ValueSpec:
						value(t, s, d, spec)
					}
				}
			}
		}
	}
}

func value(t *testing.T, s *source, d *ast.GenDecl, spec *ast.ValueSpec) {
	t.Helper()
	for _, name := range spec.Names {
		switch {
		case !name.IsExported():
		case !d.Lparen.IsValid():
			mustBegin(t, s, spec, d.Doc, name.Name)
		case spec.Doc == nil && d.Doc == nil && spec.Comment == nil:
			t.Errorf("%s: %s has no comment", s.at(name), name.Name)
		}
	}
}

func mustBegin(t *testing.T, s *source, at ast.Node, doc *ast.CommentGroup, name string) {
	t.Helper()
	text := ""
	if doc != nil {
		text = doc.Text()
	}
	for _, article := range []string{"", "A ", "An ", "The "} {
		for _, end := range []string{" ", "'s ", ",", ".", "\n"} {
			if strings.HasPrefix(text, article+name+end) {
				return
			}
		}
	}
	if text == "" {
		t.Errorf("%s: %s has no comment", s.at(at), name)
		return
	}
	first, _, _ := strings.Cut(text, "\n")
	t.Errorf("%s: the comment of %s begins with its name, not %q", s.at(at), name, first)
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// listing is a kind of value of which every declared one must stand in a list.
type listing struct {
	pkg, kind, list string
	constants       bool
	except          []string // with a reason beside it
}

var listings = []listing{
	{pkg: "slowserver/guard", kind: "Guard", list: "All"},
	{pkg: "slowserver/fault", kind: "Kind", list: "Kinds"},
	{pkg: "slowserver/fault", kind: "Place", list: "Places", constants: true, except: []string{"BeforeSend", "AfterAnswer"}}, // at a hop: HopPlaces
	{pkg: "caller/preset", kind: "Preset", list: "All"},
	{pkg: "caller/preset", kind: "Stack", list: "Stacks"},
	{pkg: "caller/policy", kind: "Failure", list: "Failures", constants: true, except: []string{"NoFailure"}}, // the zero value: nothing failed
	{pkg: "caller/policy", kind: "Body", list: "Bodies", constants: true},
	{pkg: "report", kind: "Format", list: "Formats"},
	{pkg: "internal/lab", kind: "Kind", list: "Kinds", constants: true},
}

// TestKindsAreListed finds kinds that were declared and forgotten in their list: a new one is one
// file and one word, and this test is about the word.
func TestKindsAreListed(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for _, l := range listings {
		declared, listed, found := gather(all, l)
		if !found {
			t.Errorf("%s has no list %s any more", l.pkg, l.list)
			continue
		}
		if len(listed) == 0 {
			t.Errorf("%s.%s is empty", l.pkg, l.list)
		}
		for name, at := range declared {
			if !slices.Contains(listed, name) && !slices.Contains(l.except, name) {
				t.Errorf("%s: %s is declared but not listed in %s.%s", at, name, l.pkg, l.list)
			}
		}
		for i, name := range listed {
			if slices.Contains(listed[:i], name) {
				t.Errorf("%s stands twice in %s.%s", name, l.pkg, l.list)
			}
		}
	}
}

// gather returns the declared values of a kind with their places, and what stands in the list.
// A value that is written out in the list itself counts as listed.
func gather(all []*source, l listing) (declared map[string]string, listed []string, found bool) {
	declared = map[string]string{}
	for _, s := range all {
		if s.test || s.pkg != names(l.pkg) {
			continue
		}
		for _, d := range s.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR && g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					switch {
					case name.Name == l.list && i < len(v.Values):
						found = true
						listed = append(listed, elements(v.Values[i])...)
					case l.constants && g.Tok == token.CONST && typeName(v.Type) == l.kind,
						!l.constants && i < len(v.Values) && literalOf(v.Values[i]) == l.kind:
						declared[name.Name] = s.at(name)
					}
				}
			}
		}
	}
	return declared, listed, found
}

// elements lists the names in a literal of a list; an element that is written out is shown as
// such.
func elements(e ast.Expr) []string {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var out []string
	for i, element := range list.Elts {
		if name, ok := element.(*ast.Ident); ok {
			out = append(out, name.Name)
		} else {
			out = append(out, "element "+itoa(i))
		}
	}
	return out
}

// literalOf is the name of the type of a composite literal, or of what one points to.
func literalOf(e ast.Expr) string {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = u.X
	}
	if c, ok := e.(*ast.CompositeLit); ok {
		return typeName(c.Type)
	}
	return ""
}

func typeName(e ast.Expr) string {
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
