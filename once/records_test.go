package once_test

import (
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/once/oncetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	var all sync.Map
	oncetest.Run(t, oncetest.Harness{Bubble: true, Open: func(t testing.TB) once.Records {
		m, _ := all.LoadOrStore(t, &once.Memory{})
		return m.(once.Records)
	}})
}
