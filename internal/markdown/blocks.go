// Package markdown finds the code blocks of the documents, so that tests can compile and
// run the code that readers will copy.
//
// A block in Go must compile, or occur line by line in a Go file that compiles; the root's
// TestDocsGo checks both. A block of shell commands is run by the tests of the command if
// an HTML comment, invisible to readers, stands before the block:
//
//	<!-- test -->
//	```sh
//	holdfast run nightly -- ./backup.sh
//	```
package markdown

import (
	"fmt"
	"strings"
)

// A Block is a fenced code block.
type Block struct {
	Line   int    // where the text begins, counted from 1
	Lang   string // the first word after the fence, "" if there is none
	Text   string // the text between the fences, less the indent of the first fence
	Tested bool   // <!-- test --> stands in the line before the fence
}

// Blocks returns the fenced code blocks of a document in order. An unclosed block is an
// error.
func Blocks(document string) ([]Block, error) {
	var blocks []Block
	var block *Block
	var fence, indent, before string
	for i, line := range strings.SplitAfter(document, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case block == nil && opening(text) != "":
			fence = opening(text)
			indent = line[:strings.Index(line, fence)]
			lang, _, _ := strings.Cut(strings.TrimSpace(text[len(fence):]), " ")
			block = &Block{Line: i + 2, Lang: lang, Tested: before == "<!-- test -->"}
		case block != nil && strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]) == "":
			blocks = append(blocks, *block)
			block = nil
		case block != nil:
			block.Text += strings.TrimPrefix(line, indent)
		}
		before = text
	}
	if block != nil {
		return blocks, fmt.Errorf("the block that begins in line %d is not closed", block.Line)
	}
	return blocks, nil
}

// opening returns the fence at the beginning of a line, "" without a fence.
func opening(line string) string {
	for _, mark := range []string{"`", "~"} {
		fence := line[:len(line)-len(strings.TrimLeft(line, mark))]
		if len(fence) >= 3 && !strings.Contains(line[len(fence):], "`") {
			return fence
		}
	}
	return ""
}
