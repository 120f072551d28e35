package demo

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// A Scene is the sale of one item while a server is frozen.
type Scene struct {
	Fenced  bool     `json:"fenced"` // the shop checks tokens
	TTL     float64  `json:"ttl_seconds"`
	Stale   uint64   `json:"stale_token,string"` // of the frozen server
	Token   uint64   `json:"token,string"`       // of the server that came after the frozen server
	Refused bool     `json:"refused"`            // the stale write was refused
	Lost    string   `json:"lost"`               // what the frozen server learned about its lock
	Sold    int      `json:"sold"`               // orders for the one item
	Verdict string   `json:"verdict"`
	Moments []Moment `json:"timeline"`
}

// A Moment is a line of the timeline.
type Moment struct {
	Seconds float64 `json:"seconds"`
	Server  string  `json:"server"`
	PID     int     `json:"pid"`
	Token   uint64  `json:"token,string,omitempty"` // 0 before the server has a token
	Text    string  `json:"text"`
}

func (s *Scene) verdict() string {
	switch {
	case !s.Fenced:
		return fmt.Sprintf("Without the fence: sold %d of 1. No lock can hold back a server that was paused.", s.Sold)
	case s.Refused && s.Sold == 1:
		return "With the fence: sold 1 of 1. The smaller token came too late and was refused."
	}
	return fmt.Sprintf("With the fence: sold %d of 1, which must not happen.", s.Sold)
}

// print writes the timeline as text.
func (s *Scene) print(out io.Writer) error {
	title := "Without the fence."
	if s.Fenced {
		title = "With the fence: the shop refuses tokens smaller than it has seen."
	}
	fmt.Fprintf(out, "\nA server is frozen for longer than its TTL of %gs. %s\n\n", s.TTL, title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  time\tserver\tpid\ttoken\twhat happens")
	for _, m := range s.Moments {
		token := "-"
		if m.Token > 0 {
			token = strconv.FormatUint(m.Token, 10)
		}
		fmt.Fprintf(w, "%6.3f\t%s\t%d\t%s\t%s\n", m.Seconds, m.Server, m.PID, token, m.Text)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", s.Verdict)
	return err
}
