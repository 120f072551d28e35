//go:build unix

package verify

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// A replica that is promoted knows what the one before it was told, but for what
// that was told while they were cut off from each other.
func TestPair(t *testing.T) {
	e := startPair(&room{TB: t}, 0)
	for n := range 3 { // either of them comes to lead
		ask(t, e.url, fmt.Sprintf("SET kept%d told", n), "WAIT 1 0")
		e.cut(0, true)
		ask(t, e.url, fmt.Sprintf("SET lost%d told", n))
		e.failover(0)
		if got := ask(t, e.url, fmt.Sprintf("EXISTS kept%d", n), fmt.Sprintf("EXISTS lost%d", n)); got != ":1 :0" {
			t.Errorf("failover %d: the replica has %s, want :1 :0", n, got)
		}
	}
}

// ask sends commands to a Redis over one connection, and returns the first line
// of each answer.
func ask(t *testing.T, at string, commands ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	var answers []string
	for _, command := range commands {
		fmt.Fprint(conn, command, "\r\n")
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		answers = append(answers, strings.TrimSpace(answer))
	}
	return strings.Join(answers, " ")
}
