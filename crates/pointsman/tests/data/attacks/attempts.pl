#!/usr/bin/perl
# Makes attempts, one for each line of a file: a number, a verb and its words, separated by tabs. Each is a process of its own. What
# it finds is printed; whether that is a success is judged by whoever reads it, and by what changed outside.
use strict;
use warnings;
no warnings;
use Fcntl;
use POSIX ();
use Socket qw(:DEFAULT inet_pton pack_sockaddr_in6);
$| = 1;

# Numbers of system calls on x86_64 and elsewhere.
my %number = (
    add_key => [248, 217], keyctl => [250, 219], bpf => [321, 280], perf_event_open => [298, 241],
    userfaultfd => [323, 282], io_uring_setup => [425, 425], io_uring_register => [427, 427],
    kexec_load => [246, 104], reboot => [169, 142], init_module => [175, 105], swapon => [167, 224],
    settimeofday => [164, 170], sethostname => [170, 161], acct => [163, 89], syslog => [103, 116],
    name_to_handle_at => [303, 264], open_by_handle_at => [304, 265], fanotify_init => [300, 262],
    quotactl => [179, 60], fsopen => [430, 430], fspick => [433, 433], mount_setattr => [442, 442], chroot => [161, 51],
    setns => [308, 268], unshare => [272, 97], socket => [41, 198], ioctl => [16, 29],
    mount => [165, 40], umount2 => [166, 39], pivot_root => [155, 41], open_tree => [428, 428], move_mount => [429, 429],
    pidfd_open => [434, 434], pidfd_send_signal => [424, 424], tgkill => [234, 131], rt_sigqueueinfo => [129, 138],
    openat => [257, 56], open_tree_attr => [467, 467], lsm_set_self_attr => [460, 460],
);
my $other = (POSIX::uname())[4] eq 'x86_64' ? 0 : 1;

sub call {
    my ($name, @words) = @_;
    return syscall($number{$name}[$other], map { /^-?\d+$/ ? $_ + 0 : $_ } @words);
}

sub slurp {
    my ($path) = @_;
    sysopen(my $file, $path, O_RDONLY | O_NONBLOCK) or die "$!\n";
    my $text = '';
    sysread($file, $text, 4000) // die "$!\n";
    $text =~ s/[^ -~]/ /g;
    return "found $text";
}

sub must { my ($done) = @_; die "$!\n" unless $done; return 'took'; }

# A line from whoever answers a stream.
sub answer {
    my ($socket) = @_;
    my $text = '';
    syswrite($socket, "GET / HTTP/1.0\r\n\r\n");
    sysread($socket, $text, 200);
    $text =~ s/[^ -~]/ /g;
    return "connected $text";
}

sub address {
    my ($host, $port) = @_;
    return (AF_INET6, pack_sockaddr_in6($port, inet_pton(AF_INET6, $host))) if $host =~ /:/;
    return (AF_INET, pack_sockaddr_in($port, inet_aton($host) // die "no address\n"));
}

my %verb = (
    read => sub { slurp($_[0]) },
    list => sub { opendir(my $dir, $_[0]) or die "$!\n"; 'found ' . join ' ', sort readdir $dir },
    write => sub { open(my $file, '>>', $_[0]) or die "$!\n"; print $file "planted\n"; must(close $file) },
    create => sub { sysopen(my $file, $_[0], O_WRONLY | O_CREAT | O_EXCL) or die "$!\n"; 'took' },
    mkdir => sub { must(mkdir $_[0]) },
    remove => sub { must(unlink $_[0]) },
    rename => sub { must(rename $_[0], $_[1]) },
    chmod => sub { must(chmod 0777, $_[0]) },
    truncate => sub { must(truncate $_[0], 0) },
    utime => sub { must(utime 1, 1, $_[0]) },
    link => sub { link($_[0], $_[1]) or die "$!\n"; slurp($_[1]) },
    symlink => sub { symlink($_[0], $_[1]) or die "$!\n"; slurp($_[1]) },
    plant_link => sub { must(symlink '/etc/passwd', $_[0]) },
    # From the root directory, by a descriptor of it, or from the directory that we are in.
    walk => sub {
        my ($from, $rest) = @_;
        sysopen(my $dir, $from, O_RDONLY) or die "$!\n";
        my $file = call('openat', fileno($dir), $rest, 0);
        die "$!\n" if $file < 0;
        open(my $opened, '<&=', $file) or die "$!\n";
        my $text = '';
        sysread($opened, $text, 4000) // die "$!\n";
        $text =~ s/[^ -~]/ /g;
        "found $text";
    },
    bind_mount => sub {
        my ($own, $from, $to, $name) = @_;
        call('unshare', 0x10020000) == 0 or die "unshare: $!\n" if $own;
        mkdir $to;
        call('mount', $from, $to, 'none', 4096, 0) == 0 or die "$!\n";
        slurp("$to/$name");
    },
    move_mount => sub {
        my ($from, $to, $name) = @_;
        my $tree = call('open_tree', -100, $from, 1);
        die "$!\n" if $tree < 0;
        mkdir $to;
        call('move_mount', $tree, '', -100, $to, 4) == 0 or die "$!\n";
        slurp("$to/$name");
    },
    remount => sub {
        my ($what, $file) = @_;
        call('mount', 'none', $what, 'none', 32 | 4096, 0) == 0 or die "$!\n";
        sysopen(my $planted, $file, O_WRONLY | O_CREAT) or die "$!\n";
        'took';
    },
    umount => sub { call('umount2', $_[0], 2) == 0 or die "$!\n"; 'took' },
    pivot => sub { call('pivot_root', '.', '.') == 0 or die "$!\n"; 'took' },
    unix => sub {
        my ($path, $type) = @_;
        $path =~ s/^@/\0/;
        socket(my $socket, AF_UNIX, $type, 0) or die "$!\n";
        # A path that is too long for a socket is reached through a link.
        if (length $path > 107) { my $link = "l$$"; symlink $path, $link; $path = $link }
        connect($socket, pack_sockaddr_un($path)) or die "$!\n";
        send($socket, 'x', 0) if $type == SOCK_DGRAM;
        $type == SOCK_DGRAM ? 'took' : answer($socket);
    },
    tcp => sub {
        my ($family, $to) = address(@_);
        socket(my $socket, $family, SOCK_STREAM, 0) or die "$!\n";
        connect($socket, $to) or die "$!\n";
        answer($socket);
    },
    udp => sub {
        my ($family, $to) = address(@_);
        socket(my $socket, $family, SOCK_DGRAM, 0) or die "$!\n";
        send($socket, 'x', 0, $to) or die "$!\n";
        'sent';
    },
    vsock => sub {
        my ($machine, $port) = @_;
        socket(my $socket, 40, SOCK_STREAM, 0) or die "$!\n";
        connect($socket, pack('SSLLx4', 40, 0, $port, $machine)) or die "$!\n";
        answer($socket);
    },
    raw => sub { socket(my $socket, $_[0], $_[1], $_[2]) or die "$!\n"; 'took' },
    # Through the proxy, if there is one.
    proxy => sub {
        my ($ask) = @_;
        my ($host, $port) = ($ENV{HTTP_PROXY} // '') =~ m{//(.*):(\d+)} or die "no proxy\n";
        my ($family, $to) = address($host, $port);
        socket(my $socket, $family, SOCK_STREAM, 0) or die "$!\n";
        connect($socket, $to) or die "$!\n";
        syswrite($socket, "$ask HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n");
        my ($all, $text) = ('', '');
        $all .= $text while sysread($socket, $text, 500);
        $all =~ s/[^ -~]/ /g;
        "answered $all";
    },
    kill => sub {
        my ($how, $signal, $pid) = @_;
        # Inside, the number may be that of one of our own.
        my $who = eval { slurp("/proc/$pid/cmdline") };
        die "somebody else\n" if defined $who && $who !~ /canary|pointsman/;
        if ($how eq 'plain') { return must(kill $signal, $pid) }
        if ($how eq 'group') { return must(kill -$signal, $pid) }
        if ($how eq 'thread') { return must(call('tgkill', $pid, $pid, $signal) == 0) }
        if ($how eq 'queue') { return must(call('rt_sigqueueinfo', $pid, $signal, pack('iiix4x112', $signal, 0, -1)) == 0) }
        my $process = call('pidfd_open', $pid, 0);
        die "$!\n" if $process < 0;
        must(call('pidfd_send_signal', $process, $signal, 0, 0) == 0);
    },
    call => sub { my $answer = call(@_); die "$!\n" if $answer < 0; 'took' },
);

my $done = 0;
open(my $list, '<', $ARGV[0]) or die "$ARGV[0]: $!";
while (my $line = <$list>) {
    chomp $line;
    my ($id, $verb, @words) = split /\t/, $line, -1;
    s/\@pid\@/$$/g for @words;
    my $child = fork();
    if ($child == 0) {
        alarm 3;
        my $said = eval { $verb{$verb}->(@words) };
        $said = "no: $@" unless defined $said;
        $said =~ s/\s+$//;
        syswrite(STDOUT, "attempt $id $verb: $said\n");
        POSIX::_exit(0);
    }
    waitpid $child, 0;
    $done++;
}
print "attempts made: $done\n";
