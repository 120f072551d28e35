// Command holdfast runs commands under locks that hold across processes and machines, and
// shows and breaks such locks.
//
//	holdfast run nightly -- ./backup.sh
//
// The manual is docs/cli.md. The command uses only the public API of package holdfast, so
// your own programs can do the same.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:])) }
