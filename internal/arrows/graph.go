package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
)

// A graph has nodes in reading order, from the top down.
type graph struct {
	subject string
	nodes   []string
	arrows  []arrow
}

// An arrow says that a node uses names of a second node.
type arrow struct {
	from, to int // indexes of the nodes
	names    []string
}

// up reports whether an arrow runs back up: against the reading order.
func (a arrow) up() bool { return a.to < a.from }

// newGraph makes the arrows of a graph. uses has the used names, by user and used node.
func newGraph(subject string, nodes []string, uses map[[2]string]map[string]bool) *graph {
	g := &graph{subject: subject, nodes: nodes}
	for pair, names := range uses {
		from, to := slices.Index(nodes, pair[0]), slices.Index(nodes, pair[1])
		g.arrows = append(g.arrows, arrow{from, to, slices.Sorted(maps.Keys(names))})
	}
	slices.SortFunc(g.arrows, func(a, b arrow) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return g
}

// title counts the arrows.
func (g *graph) title() string {
	up := 0
	for _, a := range g.arrows {
		if a.up() {
			up++
		}
	}
	return fmt.Sprintf("%s: %d arrows down, %d back up", g.subject, len(g.arrows)-up, up)
}

//go:embed style.css
var style string

// Sizes, in pixels.
const (
	line   = 22
	head   = 60
	letter = 7.8 // the width of a letter of a name
	margin = 16
)

// svg draws the names in a column. Arrows down are arcs on the right, arrows up are arcs on
// the left.
func (g *graph) svg() []byte {
	widest, high := 0, [2]int{} // high is the span of the longest arrow, down and up
	for _, name := range g.nodes {
		widest = max(widest, len(name))
	}
	for _, a := range g.arrows {
		if a.up() {
			high[1] = max(high[1], a.from-a.to)
		} else {
			high[0] = max(high[0], a.to-a.from)
		}
	}
	left := margin + high[1]*line/2
	right := float64(left) + float64(widest)*letter + 8
	width := int(right) + high[0]*line/2 + margin
	width = max(width, margin+len(g.title())*9+margin)
	y := func(node int) int { return head + node*line }

	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n",
		width, y(len(g.nodes))+margin, width)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n%s</style>\n", g.title(), style)
	for _, class := range []string{"down", "up"} {
		fmt.Fprintf(&b, "<marker id=\"%s\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">"+
			"<path d=\"M0 0L6 3L0 6z\" class=\"%[1]s head\"/></marker>\n", class)
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"28\" class=\"title\">%s</text>\n", margin, g.title())
	for i, name := range g.nodes {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", left, y(i)+5, name)
	}
	for _, a := range g.arrows {
		class, x := "down", right
		if a.up() {
			class, x = "up", float64(left)-6
		}
		radius := max(a.to-a.from, a.from-a.to) * line / 2
		// Arrows leave a name below its middle and arrive above, so that both can be seen.
		fmt.Fprintf(&b, "<path class=\"%s\" d=\"M%.0f %dA%d %d 0 0 1 %.0f %d\" marker-end=\"url(#%s)\"/>\n",
			class, x, y(a.from)+3, radius, radius, x, y(a.to)-3, class)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
