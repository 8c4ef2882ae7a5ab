import time, resource, pytest
from django.db import connection, transaction
from subscribers.importing import import_csv
from subscribers.exporting import export_csv
from subscribers.suppression import suppress
from tests import factories
@pytest.mark.django_db(transaction=True)
def test_probe(tmp_path):
    n=500_000
    p=tmp_path/'big.csv'
    with p.open('w') as f:
        f.write("email,First Name,city,plan\n")
        for i in range(n): f.write(f"Person{i*7919%n}@mail{i%50}.example.org,Zoë {i},\"São Paulo, {i%100}\",gold\n")
    seg = factories.SegmentFactory.create(); seg2=factories.SegmentFactory.create()
    # raw
    t=time.perf_counter()
    with transaction.atomic(), connection.cursor() as c:
        c.execute("create temp table raw (email text, a text, b text, d text) on commit drop")
        with c.copy("copy raw from stdin with (format csv, header)") as cp, p.open('rb') as f:
            while d:=f.read(65536): cp.write(d)
        c.execute("""insert into sendonce_subscribers_subscriber as s (account_id,email,status,attributes,locale,timezone,consent_source,created)
          select %s, email,'pending', jsonb_build_object('first_name',a,'city',b,'plan',d),'','','',now() from raw on conflict (account_id,email_lower) do update set attributes=s.attributes||excluded.attributes""",[seg2.account_id])
        c.execute("insert into sendonce_subscribers_membership (segment_id,subscriber_id,joined_at) select %s,id,now() from sendonce_subscribers_subscriber where account_id=%s on conflict do nothing",[seg2.pk,seg2.account_id])
    raw=time.perf_counter()-t; print("raw",raw)
    m0=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    t=time.perf_counter(); r=import_csv(p,account=seg.account,segment=seg,confirmed=True); d=time.perf_counter()-t
    print(r.imported,d,"ratio",raw/d,"rss +KB",resource.getrusage(resource.RUSAGE_SELF).ru_maxrss-m0)
    suppress(seg.account,"Person7@mail1.example.org","erased")
    t=time.perf_counter(); r=import_csv(p,account=seg.account,segment=seg,confirmed=True); d=time.perf_counter()-t
    print("again",r.unchanged,r.rejected,d)
    t=time.perf_counter()
    with (tmp_path/'o.csv').open('w',newline='') as f: print(export_csv(f,account=seg.account,segment=seg), time.perf_counter()-t)
    print("rss +KB",resource.getrusage(resource.RUSAGE_SELF).ru_maxrss-m0)
