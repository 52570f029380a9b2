#!/bin/sh
# A layer 4 balancer made of network namespaces and nftables, which treats flows as AWS's Network Load Balancer does. Nothing of it
# touches the machine: it lives in a user namespace of its own and is gone when the last program in it ends.
#
#   nlbsim.sh DIR sandbox CMD...    run CMD in new user, network and mount namespaces; needs no rights, and all else runs inside
#   nlbsim.sh DIR up cross|zonal    build it. cross: every VIP has all targets; zonal: VIP i has target i only
#   nlbsim.sh DIR cli CMD...        run CMD where the client is; DIR/resolv.conf is /etc/resolv.conf there
#   nlbsim.sh DIR targets "2 3"     from now on, new flows go to these targets; those that exist stay where they are
#
# Client 10.77.0.2; VIPs 10.77.1.11, .12, .13; targets 10.77.11.2, 10.77.12.2, 10.77.13.2 in the namespaces nlb-n1, -n2, -n3.
# The target of a new flow is a hash of source address, source port, VIP and port; connection tracking keeps it.
set -eu
PATH=$PATH:/usr/sbin:/sbin
dir=$1 verb=$2
shift 2

# in_ns NAME CMD...
in_ns() {
	ns=nlb-$1
	shift
	ip netns exec "$ns" "$@"
}

# choice MODE "TARGETS": the statement that picks the target of a new flow.
choice() {
	map='' n=0
	for i in $2; do
		if [ "$1" = cross ]; then key=$n; else key=10.77.1.1$i; fi
		map="$map${map:+, }$key : 10.77.1$i.2"
		n=$((n + 1))
	done
	if [ "$1" = cross ]; then
		echo "ip daddr 10.77.1.11-10.77.1.13 meta l4proto { tcp, udp } dnat ip to" \
			"jhash ip saddr . th sport . ip daddr . th dport mod $n seed 0x5eed map { $map }"
	else
		echo "meta l4proto { tcp, udp } dnat ip to ip daddr map { $map }"
	fi
}

# link A B NAME-IN-A NAME-IN-B ADDRESS-IN-A ADDRESS-IN-B: a cable between two namespaces, with jumbo frames as inside a cloud.
link() {
	ip link add "$3" netns "nlb-$1" mtu 9001 type veth peer name "$4" netns "nlb-$2" mtu 9001
	ip -n "nlb-$1" addr add "$5/24" dev "$3"
	ip -n "nlb-$2" addr add "$6/24" dev "$4"
	ip -n "nlb-$1" link set "$3" up
	ip -n "nlb-$2" link set "$4" up
}

up() {
	for ns in cli lb n1 n2 n3; do
		ip netns add "nlb-$ns"
		ip -n "nlb-$ns" link set lo up
	done
	link cli lb c0 l0 10.77.0.2 10.77.0.1
	ip -n nlb-cli route add default via 10.77.0.1
	for i in 1 2 3; do
		link "n$i" lb e0 "l$i" "10.77.1$i.2" "10.77.1$i.1"
		ip -n "nlb-n$i" route add default via "10.77.1$i.1"
		ip -n nlb-lb addr add "10.77.1.1$i/32" dev lo
	done
	in_ns lb sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	# Each closing brace stands on a line of its own: nft 1.0.6 wants that.
	in_ns lb nft -f - <<-RULES
		table ip nlbsim {
			chain pick {
				type nat hook prerouting priority dstnat; policy accept;
				$(choice "$1" "1 2 3")
			}
		}
	RULES
	# These exist only once something tracks connections. 120 s is what the real one has for UDP.
	in_ns lb sh -c 'for f in /proc/sys/net/netfilter/nf_conntrack_udp_timeout*; do echo 120 >$f; done'
	echo "$1" >"$dir/mode"
	echo "nameserver 127.0.0.1" >"$dir/resolv.conf"
}

case $verb in
sandbox)
	# /run/netns must be writable, and a parent's names are not wanted.
	exec unshare -Urnm sh -c 'mount -t tmpfs tmpfs /run && mkdir /run/netns && exec "$@"' sandbox "$@"
	;;
up) up "$1" ;;
cli)
	# "ip netns exec" makes a mount namespace, so that the bind mount is CMD's alone.
	exec ip netns exec nlb-cli sh -c 'mount --bind "$0" /etc/resolv.conf && exec "$@"' "$dir/resolv.conf" "$@"
	;;
targets)
	in_ns lb nft -f - <<-RULES
		flush chain ip nlbsim pick
		add rule ip nlbsim pick $(choice "$(cat "$dir/mode")" "$1")
	RULES
	;;
*)
	echo "nlbsim.sh: no verb $verb" >&2
	exit 2
	;;
esac
