// Package page shows a run of verify or of the simulator in a self-contained HTML page: the
// locks with their times and processes, the faults, and the violations.
package page

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
)

//go:embed page.html
var document string

//go:embed page.js
var script string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Parse(document))

// A Page is the content to show. Times are milliseconds after the start.
type Page struct {
	Program string     `json:"-"` // the program that has run
	Title   string     `json:"-"`
	Facts   []Fact     `json:"-"`
	Table   [][]string `json:"-"` // counts and findings; the first line is the header
	Verdict string     `json:"-"` // "" if all is well

	Unchecked []string `json:"-"` // checks that had nothing to examine
	Note      string   `json:"-"` // omissions
	Views     []string `json:"-"` // pages of Porcupine, about parts that are not linearizable

	Workers    []string    `json:"workers"` // names, if the workers have names
	Keys       []string    `json:"keys"`
	End        float64     `json:"end"`
	Holds      []Hold      `json:"holds"`
	Faults     []Fault     `json:"faults"`
	Violations []Violation `json:"violations"`
}

// A Fact is a line of the summary.
type Fact struct{ Name, Value string }

// A Hold is a bar: a lock on a key.
type Hold struct {
	Key    int     `json:"k"` // of Keys
	Worker int     `json:"w"`
	Who    string  `json:"n"`
	Mode   string  `json:"m"`
	Token  string  `json:"t"`
	Asked  float64 `json:"a"`
	From   float64 `json:"f"`
	Until  float64 `json:"d"` // the deadline after which the lock was no longer held
	To     float64 `json:"e"`
	End    string  `json:"x"` // how the hold ended
	Lost   bool    `json:"l,omitempty"`
}

// A Fault is a shade.
type Fault struct {
	Nemesis string  `json:"n"`
	Worker  int     `json:"w"` // -1 for a server
	From    float64 `json:"f"`
	To      float64 `json:"e"`
}

// A Violation is a mark.
type Violation struct {
	Check string  `json:"c"`
	Key   int     `json:"k"` // -1 for none
	At    float64 `json:"a"` // -1 without a time
	Text  string  `json:"t"`

	Waived bool `json:"w,omitempty"` // the violated guarantee was not promised
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	data, err := json.Marshal(p) // escapes text that would end a script
	if err != nil {
		return err
	}
	return page.Execute(w, struct {
		*Page
		Style  template.CSS
		Script template.JS
		Data   template.JS
	}{p, template.CSS(style), template.JS(script), template.JS(data)})
}
