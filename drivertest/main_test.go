package drivertest

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/unproved"
)

// The slow machines of these tests are made up. Their reports would hide those of real ones.
func TestMain(m *testing.M) {
	os.Unsetenv(unproved.File)
	m.Run()
}
