// Command holdfast runs commands under locks that hold across processes and
// machines, and shows and breaks such locks.
//
//	holdfast run nightly -- ./backup.sh
//
// docs/cli.md is its manual. It is a client of package holdfast like any
// other: what it does with locks, programs of yours can do as well.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:])) }
