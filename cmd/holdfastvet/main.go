// Command holdfastvet finds misuse of distributed locks: in Holdfast, redsync, bsm/redislock,
// rueidislock, etcd's concurrency, leader election of client-go, pglock, and advisory locks
// of databases.
//
//	go install github.com/holdfast-go/holdfast/cmd/holdfastvet@latest
//	holdfastvet ./...
//	go vet -vettool=$(which holdfastvet) ./...
//
// docs/vet.md describes every rule.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

func main() { multichecker.Main(rules.All...) }
