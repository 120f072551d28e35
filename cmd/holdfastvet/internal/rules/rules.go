// Package rules has a rule a file. A rule is an analyzer that reports one misuse of locks, in
// terms of package locks, and knows no library. The Doc of a rule has the page of the manual:
// what is wrong, and a bad and a good example.
package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// Usual are the rules that run unless the user chooses others.
var Usual = []*analysis.Analyzer{
	Commit,
	DeadContext,
	LoopDefer,
	OuterContext,
	Pooled,
	Refused,
	ShortTTL,
	Unreleased,
}

// Optional are the rules that run only if the user names them: their findings in public code are
// often not worth a change, or too few to know.
var Optional = []*analysis.Analyzer{
	BareKey,
	IdleFence,
	KeptLock,
	OpenTx,
	UnlockErr,
}

// All is every rule.
var All = slices.Concat(Usual, Optional)

// rule makes an analyzer of a check.
func rule(name, doc string, check func(*pass)) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     name,
		Doc:      strings.TrimSpace(doc),
		URL:      "https://github.com/holdfast-go/holdfast/blob/main/docs/vet.md#" + name,
		Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer, locks.Finder},
		Run: func(p *analysis.Pass) (any, error) {
			found := p.ResultOf[locks.Finder].(*locks.Found)
			if found.Concerns() {
				check(&pass{p, found})
			}
			return nil, nil
		},
	}
}

// A pass is what a rule sees of a package.
type pass struct {
	*analysis.Pass
	found *locks.Found
}

func (p *pass) inspector() *inspector.Inspector {
	return p.ResultOf[inspect.Analyzer].(*inspector.Inspector)
}

// report reports a misuse, unless the line or the line above has the comment
// "//holdfast:ignore" with a reason.
func (p *pass) report(n ast.Node, fixes []analysis.SuggestedFix, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if comment := p.ignored(n.Pos()); comment != nil {
		if strings.TrimSpace(strings.TrimPrefix(comment.Text, ignore)) != "" {
			return
		}
		message += " (the comment " + ignore + " needs a reason)"
	}
	p.Report(analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Message: message, SuggestedFixes: fixes})
}

const ignore = "//holdfast:ignore"

func (p *pass) ignored(pos token.Pos) *ast.Comment {
	line := p.Fset.Position(pos).Line
	for _, file := range p.Files {
		if pos < file.FileStart || pos > file.FileEnd {
			continue
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				at := p.Fset.Position(c.Pos()).Line
				if strings.HasPrefix(c.Text, ignore) && (at == line || at == line-1) {
					return c
				}
			}
		}
	}
	return nil
}
