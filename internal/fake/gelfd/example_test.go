package gelfd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// Would the server keep all of this?
func ExampleDecode() {
	doc, err := gelfd.Decode([]byte(`{"host":"web-1","short_message":"hello","_ok":true,"_user.id":7,"_big":18446744073709551615}`))
	fmt.Println(doc.Fields, doc.Dropped, doc.Wrapped, err)

	_, err = gelfd.Decode([]byte(`{"host":"web-1","short_message":" "}`))
	var refused *gelfd.Reject
	fmt.Println(errors.As(err, &refused), err)
	// Output:
	// map[big:-1 message:hello source:web-1 user_id:7] [{_ok bool}] [_big] <nil>
	// true gelfd: refused for short_message: missing or blank
}

func ExampleListen() {
	server, err := gelfd.Listen("", gelfd.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()

	conn, err := net.Dial("udp", server.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(`{"host":"web-1","short_message":"hello"}`)); err != nil {
		fmt.Println(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Wait(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	m := server.Messages()[0]
	fmt.Println(m.Fields["message"], m.Kind, m.Sizes)
	// Output: hello plain [40]
}
