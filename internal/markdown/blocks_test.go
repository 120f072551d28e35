package markdown

import (
	"slices"
	"strings"
	"testing"
)

func TestBlocks(t *testing.T) {
	document := strings.ReplaceAll(`# Title

Inline ''' is no fence, and '''neither is this'''.

'''go
a := 1

b := 2
'''

<!-- test -->
'''sh title="x y"
holdfast run
'''

1. In a list:
   '''sh
   one
     two
   '''

''''
'''go
nested
'''
''''

~~~text
tilde '''
~~~
`, "'", "`")
	want := []Block{
		{Line: 6, Lang: "go", Text: "a := 1\n\nb := 2\n"},
		{Line: 13, Lang: "sh", Text: "holdfast run\n", Tested: true},
		{Line: 18, Lang: "sh", Text: "one\n  two\n"},
		{Line: 23, Lang: "", Text: "```go\nnested\n```\n"},
		{Line: 29, Lang: "text", Text: "tilde ```\n"},
	}
	got, err := Blocks(document)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Blocks = %+v, %v\nwant     %+v", got, err, want)
	}
}

func TestBlocksUnclosed(t *testing.T) {
	_, err := Blocks("text\n\n```go\nx\n")
	if err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("Blocks of an open block: %v, want an error that names line 4", err)
	}
}

func TestBlocksCRLF(t *testing.T) {
	got, err := Blocks("```sh\r\nx\r\n```\r\n")
	if err != nil || len(got) != 1 || got[0].Lang != "sh" || got[0].Text != "x\r\n" {
		t.Errorf("Blocks with CRLF = %+v, %v", got, err)
	}
}
