package gelf

// smaller returns the next size to try after datagrams of size bytes were too long, or 0 when there is none. room is what the
// kernel says the path takes, 0 when it says nothing. If that does not explain the refusal the way is down the sizes that common
// links leave: jumbo frames, Ethernet, Ethernet in a tunnel, the least that IPv6 allows, and the 508 bytes that every IPv4 path
// takes unfragmented. Below those only the kernel's word counts.
func smaller(size, room int) int {
	if room < size && room >= minChunkSize {
		return room
	}
	for _, step := range [...]int{8192, 1472, 1452, 1392, 1232, 508} {
		if step < size {
			return step
		}
	}
	return 0
}
