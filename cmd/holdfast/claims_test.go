package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

func TestSecondsHaveThreeDecimals(t *testing.T) {
	for ms := range 20_000 {
		c := newClaim(holdfast.Holder{Left: time.Duration(ms) * time.Millisecond})
		text, err := json.Marshal(c.Left)
		if _, decimals, _ := strings.Cut(string(text), "."); err != nil || len(decimals) > 3 {
			t.Fatalf("%d ms are %s s, %v", ms, text, err)
		}
	}
}
