package report

import (
	"strconv"

	"retrylab/internal/lab"
)

// orders writes the order rows of a block as the database gave them back.
func (p *page) orders(b *block) error {
	for _, r := range b.results {
		p.gap()
		p.wrapped(bold, "  ", "orders of "+b.name(p.setting, r), 4)
		if len(r.Orders) == 0 {
			p.line("  no order")
			continue
		}
		columns := p.fit(p.orderCells(b, r), p.width-2)
		lines, err := grid(columns)
		if err != nil {
			return err
		}
		for i, l := range lines {
			st := plain
			if i == 0 {
				st = dim
			}
			p.line("  " + p.paint(st, p.clip(l, 2)))
		}
	}
	return nil
}

func (p *page) orderCells(b *block, r *lab.Result) []field {
	order := field{column: column{head: "ORDER", right: true}}
	operation := field{column: column{head: "OPERATION"}, drop: 1}
	send := field{column: column{head: "SEND"}, soft: 16}
	key := field{column: column{head: "KEY"}, soft: 12}
	node := field{column: column{head: "NODE"}, soft: 8}
	amount := field{column: column{head: "AMOUNT", right: true}}
	created := field{column: column{head: "CREATED", right: true}}
	for _, e := range r.Orders {
		order.add(strconv.FormatInt(e.Order, 10))
		operation.add(p.text(e.Operation))
		send.add(p.text(e.Send))
		key.add(orNone(p.text(e.Key)))
		node.add(p.text(e.Node))
		amount.add(p.money(b.info.Currency, e.Amount))
		at := strconv.FormatFloat(float64(e.CreatedMs)/1000, 'f', 3, 64) + " s"
		if day := timeOfDay(b.info.Begin, e.CreatedMs, "15:04:05.000"); day != "" {
			at = day + gap + at
		}
		created.add(at)
	}
	return []field{order, operation, send, key, node, amount, created}
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
