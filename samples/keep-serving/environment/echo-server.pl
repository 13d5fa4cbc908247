#!/usr/bin/perl
# Answers every line with the same line reversed. Needs nothing beyond Debian's perl-base.
use strict;
use warnings;
use IO::Socket::INET;

open(my $conf, '<', '/app/port.conf') or die "port.conf: $!\n";
chomp(my $port = <$conf>);
close($conf);

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 8, ReuseAddr => 1)
    or die "cannot listen on port $port: $!\n";
while (my $client = $listener->accept) {
    while (my $line = <$client>) {
        $line =~ s/\r?\n\z//;
        print $client scalar(reverse $line), "\n";
    }
    close($client);
}
