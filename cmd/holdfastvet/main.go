// Command holdfastvet finds misuse of distributed locks: in Holdfast, redsync, bsm/redislock,
// rueidislock, etcd's concurrency, leader election of client-go, pglock, and advisory locks
// of databases.
//
//	go install github.com/holdfast-go/holdfast/cmd/holdfastvet@latest
//	holdfastvet ./...
//	go vet -vettool=$(which holdfastvet) ./...
//
// docs/vet.md describes every rule. An optional rule runs only where a flag names the rule, as in
// "holdfastvet -opentx ./...".
package main

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

func main() { multichecker.Main(chosen(os.Args[1:])...) }

// chosen returns the rules that run: the usual ones, and those that a flag names. The questions of
// "go vet" for the flags, and of the user for help, are about every rule.
func chosen(args []string) []*analysis.Analyzer {
	if len(args) > 0 && args[0] == "help" {
		return rules.All
	}
	all := slices.Clone(rules.Usual)
	for _, rule := range rules.Optional {
		if slices.ContainsFunc(args, func(arg string) bool {
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			return strings.HasPrefix(arg, "-") && (name == rule.Name || name == "flags")
		}) {
			all = append(all, rule)
		}
	}
	return all
}
