package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// gap is the white space between two columns of a grid.
const gap = "  "

// column is one column of a grid. Its cells are set already: cut, wrapped and escaped.
type column struct {
	head  string
	right bool // numbers stand on their last digit
	cells []string
}

// grid sets the columns side by side and returns the lines, the header's first, without trailing
// blanks. A cell may have several lines. No cell holds colour: whoever paints does it afterwards,
// so that a coloured table and a plain one cannot differ in anything else.
func grid(columns []column) ([]string, error) {
	// The library takes the width of ambiguous characters (the box drawing of our pictures and ×
	// among them) from the environment it was started in. The same document gives the same bytes
	// everywhere, so the choice is made here.
	twwidth.SetOptions(twwidth.Options{})

	heads := make([]string, len(columns))
	aligns := make([]tw.Align, len(columns))
	rows := 0
	for i, c := range columns {
		heads[i], aligns[i] = c.head, tw.AlignLeft
		if c.right {
			aligns[i] = tw.AlignRight
		}
		rows = max(rows, len(c.cells))
	}
	alignment := tw.CellAlignment{Global: tw.AlignLeft, PerColumn: aligns}

	var buf bytes.Buffer
	table := tablewriter.NewTable(&buf,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off), // or AT END* becomes something else
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithTrimLine(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(alignment),
		tablewriter.WithRowAlignmentConfig(alignment),
		tablewriter.WithPadding(tw.Padding{Right: gap, Overwrite: true}),
	)
	table.Header(heads)
	for i := range rows {
		row := make([]string, len(columns))
		for j, c := range columns {
			row[j] = c.cells[i]
		}
		if err := table.Append(row); err != nil {
			return nil, fmt.Errorf("set row %d: %w", i+1, err)
		}
	}
	if err := table.Render(); err != nil {
		return nil, fmt.Errorf("set table: %w", err)
	}
	lines := strings.Split(strings.TrimRight(buf.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines, nil
}

// width is the number of columns that s takes on a terminal. It is the library's own measure, rune
// by rune, so that a grid and everything around it agree.
func width(s string) int { return twwidth.WidthWithOptions(s, twwidth.Options{}) }

// runeWidth is the width of a single character.
func runeWidth(r rune) int {
	if r >= ' ' && r < 0x7f {
		return 1
	}
	return width(string(r))
}
