"""Names of hosts of webhooks: a name that is not answered holds up its own deliveries alone."""
from faults import new_faulty, shim
from gateway import wait_until
from hooks import Receiver
from test_webhooks import QUICK, Hooked, until_called

__all__ = ["new_faulty", "shim"]  # fixtures


def by_name(receiver, name):
    """Its address by a name instead of a number."""
    return receiver.url.replace("127.0.0.1", name)


def test_a_name_that_is_not_answered_delays_no_other_app(new_faulty):
    gateway, faults = new_faulty(**QUICK)
    with Receiver() as receiver, faults.set(names_hold=1):
        stuck = [Hooked(gateway, by_name(receiver, f"dead-{number}.test")) for number in range(3)]
        for app in stuck:
            for _ in range(3):
                app.ask(by_name(receiver, f"dead-{stuck.index(app)}.test"))
        wait_until(lambda: faults.names_held == 3, "each of the names is looked up, once")
        app = Hooked(gateway, by_name(receiver, "localhost"))
        for count in range(1, 4):
            app.ask(by_name(receiver, "localhost"))
            until_called(receiver, count)
        assert faults.names_held == 3, "those names were not answered meanwhile"
        found = wait_until(lambda: [one for one in stuck[0].deliveries() if one["last_error"]],
                           "an attempt was given up")
        assert "not looked up in time" in found[0]["last_error"]
        assert (found[0]["state"], found[0]["last_status"]) == ("waiting", None)
        assert faults.names_held == 3, "no name is looked up twice at the same time"
        assert gateway.stop() == 0, "a name server that does not answer keeps no gateway from its end"


def test_a_name_that_is_answered_again_is_called(new_faulty):
    gateway, faults = new_faulty(**QUICK)
    with Receiver() as receiver:
        app = Hooked(gateway, by_name(receiver, "localhost"), "http://dead.test:9/")
        with faults.set(names_hold=1):
            app.ask("http://dead.test:9/")
            wait_until(lambda: faults.names_held == 1, "it is looked up")
            app.ask(by_name(receiver, "localhost"))
            until_called(receiver)
        wait_until(lambda: faults.names_held == 0, "it is answered")
        found = wait_until(lambda: [one for one in app.deliveries() if one["last_error"]],
                           "the attempt has failed")
        assert found[0]["url"] == "http://dead.test:9/"
