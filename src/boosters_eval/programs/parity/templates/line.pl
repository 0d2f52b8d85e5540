# A straight line through points. One JSON request per line; an answer is a line that begins with the mark.
use strict; use JSON::PP; use Time::HiRes 'time'; $| = 1;
my ($x, $y, $intercept, $slope);
sub answer { print '@@parity ', encode_json({@_}), "\n" }
sub numbers { open my $file, '<', shift or die $!; [map { $_ + 0 } <$file>] }
sub mean { my $sum = 0; $sum += $_ for @_; $sum / @_ }
while (my $line = <STDIN>) {
    my ($q, $start) = (decode_json($line), time);
    if ($q->{op} eq 'versions') { answer(versions => {mine => '1', perl => "$^V"}) }
    elsif ($q->{op} eq 'load') { ($x, $y) = (numbers($q->{x}), numbers($q->{y})); answer(elapsed_s => time - $start) }
    elsif ($q->{op} eq 'prepare') { answer(elapsed_s => 0) }
    elsif ($q->{op} eq 'fit') {
        my ($mx, $my) = (mean(@$x), mean(@$y));
        $slope = mean(map { ($x->[$_] - $mx) * ($y->[$_] - $my) } 0 .. $#$x) / mean(map { ($_ - $mx) ** 2 } @$x);
        $intercept = $my - $slope * $mx; answer(elapsed_s => time - $start);
    } elsif ($q->{op} eq 'predict') {
        my @p = map { $intercept + $slope * $_ } @$x; my $seconds = time - $start;
        open my $out, '>:raw', $q->{out} or die $!; print $out pack 'd<*', @p; close $out;
        answer(elapsed_s => $seconds, rows => scalar @p, columns => 1);
    }
}
