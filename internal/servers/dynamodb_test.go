package servers

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestDynamoDB(t *testing.T) {
	d := StartDynamoDB(t)
	const item = `{"TableName":"` + DynamoTable + `","Item":{"name":{"S":"a"}},"ConditionExpression":"attribute_not_exists(#n)","ExpressionAttributeNames":{"#n":"name"}}`
	before := d.Requests()
	d.must("PutItem", item)
	if said, err := d.ask("PutItem", item); err == nil || !strings.Contains(said, "ConditionalCheckFailed") {
		t.Errorf("created an item twice: %s, %v", said, err)
	}
	if n := d.Requests() - before; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	answer, err := http.Get("http://" + d.Addr())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if limit := answer.Header.Get("Keep-Alive"); limit != "" {
		t.Errorf("the emulator ends an idle connection: %s", limit)
	}
	conn, err := net.Dial("tcp", d.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")); err != nil {
		t.Fatal(err)
	}
	Until(t, "the request that ends in the middle", func() bool { return d.Requests() > before+2 })
	conn.Close()
	at := d.Through("127.0.0.1:9")
	if !strings.HasPrefix(at, "dynamodb://locks?") || !strings.Contains(at, "127.0.0.1%3A9") {
		t.Errorf("through a proxy it is %s", at)
	}
	if said, err := d.ask("PutItem", item); err == nil || !strings.Contains(said, "ConditionalCheckFailed") {
		t.Errorf("after a client has left: %s, %v", said, err)
	}
	d.Kill()
	if _, err := d.ask("PutItem", item); err == nil {
		t.Error("a killed emulator answers")
	}
	d.Restart()
	if said, err := d.ask("PutItem", item); err == nil || !strings.Contains(said, "ConditionalCheckFailed") {
		t.Errorf("after a restart: %s, %v; want the item", said, err)
	}
}
