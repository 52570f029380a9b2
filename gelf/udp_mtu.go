package gelf

// What stands before a datagram's payload in the MTU: the IP header without options, and UDP's 8 bytes.
const (
	overheadV4 = 20 + 8
	overheadV6 = 40 + 8
)

// smaller returns the next size to try after datagrams of size bytes were too long, or 0 when there is none. mtu is what the
// kernel says about the path, 0 when it says nothing. If that does not explain the refusal the way is down the sizes that common
// links leave: jumbo frames, Ethernet, Ethernet in a tunnel, the least that IPv6 allows, and the 508 bytes that every IPv4 path
// takes unfragmented. Below those only the kernel's word counts.
func smaller(size, mtu int, v6 bool) int {
	overhead := overheadV4
	if v6 {
		overhead = overheadV6
	}
	if known := mtu - overhead; mtu > 0 && known < size && known >= minChunkSize {
		return known
	}
	for _, step := range [...]int{8192, 1472, 1452, 1392, 1232, 508} {
		if step < size {
			return step
		}
	}
	return 0
}
