// Package chart draws bars on logarithmic axes as SVG. Browsers show the chart in the
// colours of the reader, light or dark.
package chart

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"math"
	"time"
)

// A Chart has a row for each subject, in groups, and a panel for each measure.
type Chart struct {
	Title, Subtitle string
	Note            string    // below the subtitle
	Legend          [3]string // of the tones
	Panels          []string
	Facts           []string // heads of the columns of text at the right
	Groups          []Group
}

// A Group has rows, and a title unless the chart has only one group.
type Group struct {
	Title string
	Rows  []Row
}

// A Row is a subject of the chart.
type Row struct {
	Name  string
	Tone  int   // an index of Chart.Legend
	Bars  []Bar // a bar for each panel
	Facts []string
}

// A Bar spans from the median to the 99th percentile. The zero Bar is not drawn.
type Bar struct {
	P50, P99 time.Duration
	Label    string
}

//go:embed style.css
var style string

// Sizes, in pixels.
const (
	margin  = 24
	panel   = 160
	gap     = 46 // between panels
	fact    = 76
	head    = 146 // above the first group
	title   = 30  // of a group
	line    = 21
	bar     = 8
	digit   = 6.4 // the width of a letter of a label
	padding = 4
)

func (c Chart) width() int { return int(c.fact(len(c.Facts)-1)) + margin }

func (c Chart) height() int {
	h := head + margin
	for _, g := range c.Groups {
		h += line * len(g.Rows)
		if g.Title != "" {
			h += title
		}
	}
	return h
}

// left returns where a panel begins.
func (c Chart) left(i int) float64 { return margin + c.names() + float64(i*(panel+gap)) }

// names returns the width of the column of names.
func (c Chart) names() float64 {
	longest := 0
	for _, g := range c.Groups {
		for _, r := range g.Rows {
			longest = max(longest, len([]rune(r.Name)))
		}
	}
	return float64(longest+4) * digit
}

// Draw returns the chart as an SVG file.
func (c Chart) Draw() []byte {
	d := &drawing{}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`,
		c.width(), c.height(), c.width(), c.height())
	d.put(`<title>%s</title><desc>%s</desc>`, text(c.Title), text(c.Subtitle))
	d.put(`<style>%s</style>`, style)
	d.put(`<rect class="page" width="%d" height="%d" rx="10"/>`, c.width(), c.height())
	d.put(`<text class="title" x="%d" y="40">%s</text>`, margin, text(c.Title))
	d.put(`<text class="note" x="%d" y="61">%s</text>`, margin, text(c.Subtitle))
	d.put(`<text class="note" x="%d" y="79">%s</text>`, margin, text(c.Note))
	c.legend(d)
	for i, name := range c.Panels {
		d.put(`<text class="head" x="%.0f" y="%d">%s</text>`, c.left(i), head-24, text(name))
		c.grid(d, i, c.scale(i))
	}
	for i, name := range c.Facts {
		d.put(`<text class="head end" x="%.0f" y="%d">%s</text>`, c.fact(i), head-24, text(name))
	}
	y := head
	for _, g := range c.Groups {
		if g.Title != "" {
			y += title
		}
		d.put(`<text class="group" x="%d" y="%d">%s</text>`, margin, y-9, text(g.Title))
		for _, r := range g.Rows {
			c.row(d, r, y)
			y += line
		}
	}
	d.put(`</svg>`)
	return d.Bytes()
}

// fact returns where a column of text ends.
func (c Chart) fact(i int) float64 { return c.left(len(c.Panels)) - gap/2 + float64((i+1)*fact) }

func (c Chart) legend(d *drawing) {
	x := float64(c.width() - margin)
	for i := len(c.Legend) - 1; i >= 0; i-- {
		x -= float64(len(c.Legend[i]))*digit + 14
		d.put(`<circle class="tone%d" cx="%.0f" cy="36" r="5"/><text class="note" x="%.0f" y="40">%s</text>`,
			i, x, x+10, text(c.Legend[i]))
		x -= 16
	}
}

// grid draws a line for each power of ten, and labels lines where there is room.
func (c Chart) grid(d *drawing, i int, s scale) {
	every := 1
	if s.high-s.low > 4 {
		every = 2
	}
	for n, at := range s.decades() {
		x := c.left(i) + s.place(at)
		d.put(`<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, head, c.height()-margin)
		if n%every == 0 {
			d.put(`<text class="axis" x="%.1f" y="%d">%s</text>`, x, head-6, text(brief(at)))
		}
	}
}

func (c Chart) row(d *drawing, r Row, y int) {
	middle := float64(y) + line/2.0 - 3
	d.put(`<text class="name%d" x="%d" y="%.0f">%s</text>`, r.Tone, margin+10, middle+4, text(r.Name))
	for i, b := range r.Bars {
		if b.P50 <= 0 {
			continue
		}
		s := c.scale(i)
		from, to := s.place(b.P50), s.place(max(b.P99, b.P50))
		d.put(`<rect class="bar tone%d" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="%d"/>`,
			r.Tone, c.left(i)+from, middle-bar/2, math.Max(to-from, 1), bar, bar/2)
		d.put(`<circle class="tone%d" cx="%.1f" cy="%.1f" r="4.5"/>`, r.Tone, c.left(i)+from, middle)
		room := float64(len([]rune(b.Label)))*digit + 2*padding
		if x := to + padding + 3; x+room <= panel+gap {
			d.put(`<text class="label" x="%.1f" y="%.0f">%s</text>`, c.left(i)+x, middle+4, text(b.Label))
		} else {
			d.put(`<text class="label end" x="%.1f" y="%.0f">%s</text>`, c.left(i)+from-padding-4, middle+4, text(b.Label))
		}
	}
	for i, f := range r.Facts {
		d.put(`<text class="label end" x="%.0f" y="%.0f">%s</text>`, c.fact(i), middle+4, text(f))
	}
}

// A drawing grows line by line.
type drawing struct{ bytes.Buffer }

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

// text escapes text between tags.
func text(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer never fails
	return b.String()
}
