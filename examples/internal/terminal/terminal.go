// Package terminal lets the person in front of a program decide how long it works.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"os"
)

// Confirm says a sentence and waits for Enter. If ctx ends before, it returns why.
func Confirm(ctx context.Context, sentence string) error {
	fmt.Println(sentence, "Press Enter to go on.")
	pressed := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		pressed <- err
	}()
	select {
	case err := <-pressed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
