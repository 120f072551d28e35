package all_test

import (
	"strings"
	"testing"

	_ "github.com/holdfast-go/holdfast/all"
	"github.com/holdfast-go/holdfast/driver"
)

func TestEveryStoreIsKnown(t *testing.T) {
	_, err := driver.Open(t.Context(), "oracle://sa@db")
	if err == nil || strings.Contains(err.Error(), "not imported") || !strings.Contains(err.Error(), `no store for scheme "oracle" (known: azblob, dynamodb, etcd,`) {
		t.Error(err)
	}
}
