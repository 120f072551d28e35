package check

import (
	"strings"
	"testing"
)

// That Porcupine has had too little time is no violation.
func TestPorcupineIsNotDone(t *testing.T) {
	var many []*Access
	for i := range 1000 { // all at once: there is no end of orders
		many = append(many, &Access{Who: Who{1, 1, i}, Write: true, Token: uint64(1 + i%7), Value: uint64(i + 1), No: i%7 < 3, Call: 1, Return: 2})
	}
	all := linearizable("k", true, many, 1)
	if len(all) != 1 || !all[0].Unproved || !strings.Contains(all[0].Text, "not done") {
		t.Errorf("%+v", all)
	}
}
