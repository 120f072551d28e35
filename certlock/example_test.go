package certlock_test

import (
	"context"
	"log"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/certlock"
	"github.com/holdfast-go/holdfast/filelock"
)

// Any store will do: the files of one directory, Redis, a database.
func Example() {
	locks := holdfast.New(filelock.New("/run/app/locks", nil), &holdfast.Options{Prefix: "certs/"})
	defer locks.Close()

	certmagic.Default.Storage = certlock.New(&certmagic.FileStorage{Path: "/shared/certs"}, locks)
	config := certmagic.NewDefault()
	if err := config.ManageSync(context.Background(), []string{"example.com"}); err != nil {
		log.Fatal(err)
	}
}
