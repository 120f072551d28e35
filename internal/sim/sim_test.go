package sim

import (
	"flag"
	"testing"
)

var worlds = NewSeeds(flag.CommandLine, "./internal/sim")

// TestSeeds runs worlds of the whole engine on stores of one server.
func TestSeeds(t *testing.T) { worlds.Run(t, 0.35, 25, engine.explore) }
