package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
)

var sample = Chart{
	Title: "Time < & >", Subtitle: `"quoted"`, Legend: [3]string{"ours", "theirs", "bare"},
	Panels: []string{"alone", "together"}, Facts: []string{"locks/s"},
	Groups: []Group{
		{Title: "Store", Rows: []Row{
			{Name: "A & B", Bars: []Bar{{80, 2 * time.Microsecond, "80 ns"}, {time.Millisecond, time.Second, "1 ms"}}, Facts: []string{"7"}},
			{Name: "C", Tone: 2, Bars: []Bar{{}, {P50: time.Second, P99: 3 * time.Second, Label: "1 s"}}},
			{Name: "D", Tone: 1, Bars: []Bar{{P50: time.Microsecond}}},
		}},
		{Title: "Nothing"},
	},
}

// elements reads an SVG file to its end.
func elements(t *testing.T, svg []byte) (all []xml.StartElement) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			all = append(all, e.Copy())
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func TestDraw(t *testing.T) {
	bars := 0
	for _, e := range elements(t, sample.Draw()) {
		for _, name := range []string{"x", "x1", "cx", "y", "cy"} {
			text := attribute(e, name)
			if text == "" {
				continue
			}
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || n < 0 || n > float64(max(sample.width(), sample.height())) {
				t.Errorf("%s: %s=%q is outside", e.Name.Local, name, text)
			}
		}
		if e.Name.Local == "rect" && strings.HasPrefix(attribute(e, "class"), "bar") {
			bars++
		}
	}
	if bars != 4 {
		t.Errorf("drew %d bars, want 4", bars)
	}
}

func TestDrawNothing(t *testing.T) {
	elements(t, Chart{Panels: []string{"empty"}, Groups: []Group{{Rows: []Row{{Bars: []Bar{{}}}}}}}.Draw())
	elements(t, Chart{}.Draw())
}

func TestScale(t *testing.T) {
	for _, test := range []struct {
		panel int
		want  scale
	}{
		{0, scale{1, 4}},
		{1, scale{6, 10}},
	} {
		if s := sample.scale(test.panel); s != test.want {
			t.Errorf("scale %d = %v, want %v", test.panel, s, test.want)
		}
	}
	s := scale{3, 6}
	if all := s.decades(); len(all) != 4 || all[0] != time.Microsecond || all[3] != time.Millisecond {
		t.Errorf("decades of %v = %v", s, all)
	}
	for d, want := range map[time.Duration]float64{time.Microsecond: 0, time.Millisecond: panel, 10 * time.Microsecond: panel / 3.0} {
		if got := s.place(d); got < want-0.01 || got > want+0.01 {
			t.Errorf("%v is at %v, want %v", d, got, want)
		}
	}
	for want, d := range map[string]time.Duration{"10 ns": 10, "100 µs": 100 * time.Microsecond, "1 ms": time.Millisecond, "10 s": 10 * time.Second} {
		if got := brief(d); got != want {
			t.Errorf("%v is called %q, want %q", d, got, want)
		}
	}
}
